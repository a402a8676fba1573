/** The answer to a question to the store. One that throws, as none should, has rejected. */
export function asked<Answer>(question: () => Promise<Answer>): Promise<Answer> {
  try {
    return question();
  } catch (error) {
    return Promise.reject(error);
  }
}
