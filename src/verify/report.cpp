#include "verify/report.h"

#include <fmt/format.h>

#include <array>

namespace riffle {

std::string_view name_of(Problem::Check check) {
  static constexpr std::array<std::string_view, 9> kNames{"form",     "partition", "deadlock",
                                                          "lifetime", "mean",      "mixing",
                                                          "traffic",  "period",    "serving"};
  return kNames.at(static_cast<std::size_t>(check));
}

std::string print(const Problem& problem) {
  std::string where = fmt::format("step {}", problem.step);
  if (problem.bucket >= 0) where += fmt::format(", bucket {}", problem.bucket);
  if (!problem.ranks.empty()) where += fmt::format(", ranks {}", print(problem.ranks));
  return fmt::format("{}: {}", where, problem.what);
}

Json json_of(const Verification& verification) {
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json{{"strategy", verification.strategy},
            {"workers", verification.workers},
            {"ok", verification.ok()},
            {"partition", verification.partition},
            {"deadlock_free", verification.deadlock_free},
            {"mean_preserved", optional(verification.mean_preserved)},
            {"period", optional(verification.period)},
            {"mixing_rate", optional(verification.mixing_rate)},
            {"steps_to_consensus", optional(verification.steps_to_consensus)},
            {"problems", Json::array()}};
  if (const auto& proof = verification.rounding)
    json["rounding"] = {{"wire", name_of(proof->wire)},
                        {"error_bound", proof->error_bound},
                        {"steps", proof->steps},
                        {"drift", proof->drift}};
  if (const auto& proof = verification.serving)
    json["serving"] = {{"ahead", proof->ahead < 0 ? Json() : Json(proof->ahead)},
                       {"workers", proof->workers},
                       {"orders", proof->orders}};
  for (const Problem& problem : verification.problems)
    json["problems"].push_back({{"check", name_of(problem.check)},
                                {"step", problem.step},
                                {"bucket", problem.bucket >= 0 ? Json(problem.bucket) : Json()},
                                {"ranks", problem.ranks.ranks()},
                                {"what", problem.what}});
  return json;
}

std::string to_json(const Verification& verification) {
  return json_of(verification).dump(1) + "\n";
}

}  // namespace riffle
