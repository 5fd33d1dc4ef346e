// Maps whose keys are known to be there, and maps of lists.

/**
 * What a map holds for a key; a key that it has not is a mistake of ours, and is named.
 *
 * @template K, V
 * @param {Map<K, V>} map
 * @param {K | null | undefined} key
 * @returns {V}
 */
export function known(map, key) {
  const found = map.get(/** @type {K} */ (key));
  if (found === undefined) throw new Error(`nothing is known of ${key}`);
  return found;
}

/**
 * Add a value to the list that a map holds for a key.
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
