/** Calls `question` and turns a synchronous throw into a rejection. */
export function asked<Answer>(question: () => Promise<Answer>): Promise<Answer> {
  try {
    return question();
  } catch (error) {
    return Promise.reject(error);
  }
}
