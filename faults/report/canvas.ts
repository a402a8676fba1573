import { picture, rect, text as textElement } from "../../tools/svg/svg.mjs";

interface TextStyle {
  readonly size: number;
  readonly bold?: boolean;
  readonly middle?: boolean;
}

/** Draws shapes from top to bottom, as an SVG that needs no style sheet and no script. */
export class Canvas {
  y = 0;
  readonly #width: number;
  readonly #shapes: string[] = [];

  constructor(width: number) {
    this.#width = width;
  }

  /** Moves down, and returns the new position. */
  skip(height: number): number {
    this.y += height;
    return this.y;
  }

  rect(x: number, y: number, width: number, height: number, fill: string, title?: string): void {
    this.#shapes.push(rect({ x, y, width, height, fill }, title));
  }

  text(x: number, y: number, text: string, { size, bold, middle }: TextStyle): void {
    const style = {
      "font-size": size,
      ...(bold === true ? { "font-weight": "bold" } : {}),
      ...(middle === true ? { "text-anchor": "middle" } : {}),
    };
    this.#shapes.push(textElement(text, { x, y, ...style }));
  }

  /** Draws a named lane across the picture. Returns its upper edge. */
  lane(name: string, height: number, right: number): number {
    const { y } = this;
    this.text(8, y + height - 6, name, { size: 11 });
    this.rect(8, y + height - 0.5, right - 8, 0.5, "#ddd");
    this.y += height;
    return y;
  }

  legend(
    marks: readonly (readonly [name: string, colour: string])[],
    left: number,
    right: number,
  ): void {
    let x = left;
    for (const [name, colour] of marks) {
      const width = 30 + name.length * 6.2;
      if (x + width > right) {
        x = left;
        this.y += 18;
      }
      this.rect(x, this.y, 12, 12, colour);
      this.text(x + 16, this.y + 10, name, { size: 11 });
      x += width;
    }
    this.y += 24;
  }

  svg(): string {
    const style = { "font-family": "sans-serif", fill: "#333" };
    return picture(this.#width, this.y, this.#shapes, style);
  }
}
