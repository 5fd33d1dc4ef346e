// Helpers for maps whose keys must exist, and for maps of lists.

/**
 * The value of a key that must exist; throws an error that names a missing key.
 *
 * @template K, V
 * @param {Map<K, V>} map
 * @param {K | null | undefined} key
 * @returns {V}
 */
export function known(map, key) {
  const found = map.get(/** @type {K} */ (key));
  if (found === undefined) throw new Error(`unknown key ${key}`);
  return found;
}

/**
 * Add a value to the list stored under a key.
 *
 * @template K, V
 * @param {Map<K, V[]>} map
 * @param {K} key
 * @param {V} value
 */
export function push(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
