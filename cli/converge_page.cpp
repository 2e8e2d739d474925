#include "converge_page.h"

#include <fmt/format.h>

namespace riffle::cli {

Json page_result(const Json& trained) {
  const Json& steps = trained["steps"];
  Json result{{"contender", trained["strategy"]},
              {"steps", steps.empty() ? Json(0) : steps.back()},
              {"accuracy", trained["accuracy"]},
              {"evaluations", Json::array()}};
  for (const char* key : {"seconds_per_step", "theory"})
    if (trained.contains(key)) result[key] = trained[key];

  Json& curve = result["curve"];
  curve = {{"step", steps},
           {"loss", trained["loss"]},
           {"consensus_distance", trained["consensus_distance"]}};
  if (trained.contains("seconds")) curve["seconds"] = trained["seconds"];
  // On samples never trained on, where `--test` asked for it.
  for (std::size_t i = 0; i < trained.value("test_accuracy", Json::array()).size(); ++i) {
    Json each{{"step", steps[i]}, {"accuracy", trained["test_accuracy"][i]}};
    if (curve.contains("seconds")) each["seconds"] = curve["seconds"][i];
    result["evaluations"].push_back(std::move(each));
  }

  if (trained["diverged"] == true)
    result["failed"] = fmt::format("a loss was not finite after step {}", result["steps"].dump());
  else
    result["final_loss"] = trained["loss"].back();
  return result;
}

}  // namespace riffle::cli
