// @ts-check
/** Finds figures in the results by workload, case and number of nodes. */

import { contenderKinds } from "../contenders/list.mjs";
import { median, pairedRatios } from "./statistics.mjs";

/** @import { Series } from "../types.ts" */
/** @typedef {{ workload: string, label: string, nodes: number }} Place */

export class Lookup {
  /** @param {readonly Series[]} series */
  constructor(series) {
    this.series = series;
  }

  /** @param {Place} place @param {string} contender */
  find({ workload, label, nodes }, contender) {
    return this.series.find(
      (each) =>
        each.workload === workload &&
        each.label === label &&
        each.nodes === nodes &&
        each.contender === contender,
    );
  }

  /** @param {Place} place @param {string} contender @param {string} metric */
  median(place, contender, metric) {
    return median(this.find(place, contender)?.values[metric] ?? []);
  }

  /**
   * Returns the worst round. @param {Place} place @param {string} contender @param {string} metric
   */
  greatest(place, contender, metric) {
    const values = (this.find(place, contender)?.values[metric] ?? []).filter(
      (value) => value !== undefined,
    );
    return values.length === 0 ? undefined : Math.max(...values);
  }

  /**
   * Returns the median of the paired ratios.
   *
   * @param {Place} place
   * @param {string} contender
   * @param {string} metric
   * @param {string} [base]
   */
  ratio(place, contender, metric, base = "floor") {
    return median(pairedRatios(this.find(place, contender), this.find(place, base), metric));
  }

  /** Returns the measured peers with their figures. @param {Place} place @param {string} metric */
  peers(place, metric) {
    return contenderKinds
      .filter(({ peer }) => peer)
      .flatMap(({ id }) => {
        const value = this.median(place, id, metric);
        return value === undefined ? [] : [{ id, value }];
      });
  }

  /** Returns the measured contenders, in the order of the list. @param {Place} place */
  contenders(place) {
    const here = this.series.filter(
      (each) =>
        each.workload === place.workload &&
        each.label === place.label &&
        each.nodes === place.nodes,
    );
    const order = contenderKinds.map(({ id }) => id);
    const rank = (/** @type {Series} */ { contender }) => {
      const [id = "", variant] = contender.split("@");
      return order.indexOf(id) + (variant === undefined ? 0 : 0.5);
    };
    return here.sort((a, b) => rank(a) - rank(b));
  }

  /** Returns the cases of a workload, in the order of measurement. @param {string} workload */
  places(workload) {
    /** @type {Map<string, Place>} */
    const seen = new Map();
    for (const { label, nodes, ...each } of this.series) {
      if (each.workload !== workload) continue;
      seen.set(`${nodes} ${label}`, { workload, label, nodes });
    }
    return [...seen.values()].sort((a, b) => a.nodes - b.nodes);
  }
}
