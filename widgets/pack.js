// A document as Python packed it (see pack.py): texts, lists and names of objects written once.

/** The document again.  Texts and lists may stand in several places of it; objects never do. */
export function unpack({ shared, data }) {
  const values = [];
  const made = (value) => {
    if (typeof value === "string") {
      if (value[0] !== "~") return value;
      return value[1] === "~" ? value.slice(1) : values[Number(value.slice(1))];
    }
    if (Array.isArray(value)) return list(value);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, made(inner)]));
  };
  const list = (value) => {
    const first = typeof value[0] === "string" ? value[0] : "";
    if (first === "~|") return value.slice(1).map(made).join("\n");
    if (!first.startsWith("~:")) return value.map(made);
    const names = values[Number(first.slice(2))];
    return Object.fromEntries(names.map((name, i) => [name, made(value[i + 1])]));
  };
  for (const value of shared) values.push(made(value));
  return made(data);
}
