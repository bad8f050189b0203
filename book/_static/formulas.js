/* The formulas of the interactive figures: pure functions, and nothing else.
   tests/book/test_explorables.py compares every one with its Python twin; it fails for a function
   without a twin. A denotes the number of actions; logarithms are natural. */
var PolicyLab = {};

PolicyLab.formulas = (function () {
  "use strict";

  /**
   * Probabilities of a softmax policy, exp(z / temperature) over its sum, without overflow.
   * @param {number[]} logits (A,) one preference an action
   * @param {number} temperature above 0
   * @returns {number[]} (A,) probabilities
   */
  function softmax(logits, temperature) {
    const largest = Math.max(...logits);
    const weights = logits.map((logit) => Math.exp((logit - largest) / temperature));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return weights.map((weight) => weight / total);
  }

  /**
   * Entropy of a distribution, in nats; an action of probability 0 adds 0.
   * @param {number[]} probs (A,)
   * @returns {number} between 0 and log A
   */
  function entropy(probs) {
    return probs.reduce((sum, prob) => (prob > 0 ? sum - prob * Math.log(prob) : sum), 0);
  }

  /**
   * Mean of the values under the probabilities; with rewards, the policy's expected reward.
   * @param {number[]} probs (A,)
   * @param {number[]} values (A,)
   * @returns {number} in the unit of the values
   */
  function expectedValue(probs, values) {
    return probs.reduce((sum, prob, c) => sum + prob * values[c], 0);
  }

  /**
   * What is left of an action's one after the policy's share: 1[c = action] - probs[c].
   * @param {number[]} probs (A,)
   * @param {number} action index of the action taken
   * @returns {number[]} (A,) sums to 0
   */
  function surprise(probs, action) {
    return probs.map((prob, c) => (c === action ? 1 : 0) - prob);
  }

  /**
   * Gradient of advantage * log softmax(logits / temperature)[action] with respect to the logits.
   * The logits enter as logits / temperature, so the chain rule brings the factor 1 / temperature.
   * @param {number[]} logits (A,)
   * @param {number} action index of the action taken
   * @param {number} advantage reward minus baseline
   * @param {number} temperature above 0
   * @returns {number[]} (A,) points uphill and sums to 0
   */
  function policyGradient(logits, action, advantage, temperature) {
    const left = surprise(softmax(logits, temperature), action);
    return left.map((entry) => (advantage * entry) / temperature);
  }

  /**
   * Gradient of the expected reward: the mean of policyGradient over the policy's own actions.
   * Any baseline drops out of it, since the entries of `surprise` have mean 0.
   * @param {number[]} logits (A,)
   * @param {number[]} rewards (A,) one an action
   * @param {number} temperature above 0
   * @returns {number[]} (A,) points uphill and sums to 0
   */
  function expectedGradient(logits, rewards, temperature) {
    const probs = softmax(logits, temperature);
    const mean = expectedValue(probs, rewards);
    return probs.map((prob, c) => (prob * (rewards[c] - mean)) / temperature);
  }

  /**
   * One step of gradient ascent.
   * @param {number[]} logits (A,)
   * @param {number[]} gradient (A,)
   * @param {number} stepSize
   * @returns {number[]} (A,) a new array
   */
  function ascend(logits, gradient, stepSize) {
    return logits.map((logit, c) => logit + stepSize * gradient[c]);
  }

  /**
   * The action at which the running sum of the probabilities first exceeds the draw.
   * @param {number[]} probs (A,)
   * @param {number} draw in [0, 1)
   * @returns {number} index of an action of positive probability
   */
  function pick(probs, draw) {
    let sum = 0;
    let last = 0;
    for (let c = 0; c < probs.length; c++) {
      sum += probs[c];
      if (probs[c] > 0) last = c;
      if (draw < sum) return c;
    }
    return last; /* rounding left the sum a little below 1 */
  }

  /**
   * Mix the bits of a 32-bit number: the last stage of MurmurHash3 (Austin Appleby, public domain).
   * @param {number} bits an integer
   * @returns {number} an integer in [0, 2^32)
   */
  function mix(bits) {
    let h = bits >>> 0;
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return (h ^ (h >>> 16)) >>> 0;
  }

  /**
   * Pseudorandom number number `index` of a seed, without state: good enough to show sampling.
   * @param {number} seed an integer in [0, 2^32)
   * @param {number} index 0, 1, 2, ...
   * @returns {number} in [0, 1)
   */
  function uniform(seed, index) {
    return mix(mix(seed + 1) + Math.imul(index + 1, 0x9e3779b9)) / 4294967296;
  }

  return {
    softmax,
    entropy,
    expectedValue,
    surprise,
    policyGradient,
    expectedGradient,
    ascend,
    pick,
    mix,
    uniform,
  };
})();
