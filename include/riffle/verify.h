// Proves or refutes a schedule before it runs: who meets whom, that nobody waits forever, that no
// value is lost, that the mean is kept, and how fast workers agree. docs/verify.md says what each
// check proves.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "riffle/strategy.h"

namespace riffle {

// What is wrong, where. Steps count from the first program.
struct Problem {
  enum class Check { form, partition, deadlock, lifetime, mean, mixing, traffic, period, serving };
  Check check = Check::form;
  Step step = 0;
  int bucket = -1;  // -1: of no one bucket
  Group ranks;      // those concerned
  std::string what;
  bool operator==(const Problem&) const = default;
};
std::string_view name_of(Problem::Check check);
// "step 3, bucket 0, ranks {1 2}: ..."
std::string print(const Problem& problem);

// What still holds where values travel rounded (program.h, Wire).
struct RoundingProof {
  Wire wire = Wire::f32;
  double error_bound = 0;  // of one rounding: of the value (int8: of the largest in its block)
  Step steps = 0;          // that were played
  // How far the mean was then from that of exact arithmetic, of values that have moved by about 1.
  // With feedback, what f32 additions amount to; without, what rounding has lost for good.
  double drift = 0;
};

// That values are served rightly, whoever is fast: nobody waits forever, nothing is lost, and what
// a worker is given is as new as the bound says.
struct ServingProof {
  int ahead = -1;   // of the exchange; below 0: no bound
  int workers = 0;  // that were played
  int orders = 0;   // in which events were drawn
};

struct Verification {
  std::string strategy;
  int workers = 0;
  bool partition = true;               // groups disjoint, covering who must take part
  bool deadlock_free = true;           // issue order over lanes, start and due points
  std::optional<bool> mean_preserved;  // at zero gradient, exactly; none for an outer optimizer
  std::optional<int> period;           // none: groups are drawn, the programs never repeat
  // The factor by which disagreement shrinks per step; none where the program is malformed. Where
  // values are served, of workers that are in step.
  std::optional<double> mixing_rate;
  // The first step count after which all hold the same, exactly; none if never, or where that is a
  // question of who is fast.
  std::optional<int> steps_to_consensus;
  std::optional<RoundingProof> rounding;  // none: values travel as they are
  std::optional<ServingProof> serving;    // none: nothing is served
  std::vector<Problem> problems;

  [[nodiscard]] bool ok() const { return problems.empty(); }
};

// The strategy's programs over a whole period (a sample where there is none). `trace` gives the
// buckets. Its traits are checked too.
Verification verify(const NamedStrategy& strategy, const World& world, const Trace& trace);

// Any programs. They repeat after the last one, or, not `periodic`, are draws of groups.
Verification verify(const std::vector<Program>& programs, bool periodic, const World& world,
                    const BucketPlan& buckets);

// A fixed report: the fields of design's JSON contract, in its order.
std::string to_json(const Verification& verification);

}  // namespace riffle
