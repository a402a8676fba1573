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
    const shape = `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${fill}"`;
    this.#shapes.push(
      title === undefined ? `${shape}/>` : `${shape}><title>${title}</title></rect>`,
    );
  }

  text(x: number, y: number, text: string, { size, bold, middle }: TextStyle): void {
    const weight = bold === true ? ' font-weight="bold"' : "";
    const anchor = middle === true ? ' text-anchor="middle"' : "";
    this.#shapes.push(
      `<text x="${round(x)}" y="${round(y)}" font-size="${size}"${weight}${anchor}>${text}</text>`,
    );
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
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.#width}" height="${round(this.y)}" ` +
        `viewBox="0 0 ${this.#width} ${round(this.y)}" font-family="sans-serif" fill="#333">`,
      `<rect width="100%" height="100%" fill="#fff"/>`,
      ...this.#shapes,
      "</svg>\n",
    ].join("\n");
  }
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
