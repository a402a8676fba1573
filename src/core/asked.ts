/** The answer to a question. One that throws has rejected: nobody has to be ready for both. */
export function asked<Answer>(question: () => Promise<Answer>): Promise<Answer> {
  try {
    return question();
  } catch (error) {
    return Promise.reject(error);
  }
}
