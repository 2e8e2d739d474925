#include "page_file.h"

#include <algorithm>

#include "common.h"
#include "report/group_lists.h"
#include "report/page.h"
#include "report/step_timeline.h"

namespace riffle::cli {

void PageFile::add_to(CLI::App& command) {
  command.add_option("--report", file, "also write a page of charts (HTML, one file) to this file");
}

void PageFile::check() const {
  if (wanted()) report::require_page();
}

void PageFile::write(const Json& document) const {
  if (wanted()) report::write_page(file, document);
}

Json page_document(const std::string& kind, const Trace& trace) {
  return Json{{"riffle", kind},
              {"version", 1},
              {"command", command_line()},
              {"trace", trace.model},
              {"results", Json::array()}};
}

void add_cluster(Json& document, const Cluster& cluster) {
  document["cluster"] = print(cluster);
  document["topology"] = Json::parse(to_json(cluster));
  document["workers"] = cluster.size();
}

Json page_result(const std::string& spec, const Simulation& result) {
  return Json{{"contender", spec},
              {"seconds_per_step", result.iteration.count()},
              {"compute_seconds", result.compute.count()},
              {"exposed_communication_seconds", result.exposed_communication.count()},
              {"speedup", result.speedup},
              {"efficiency", result.efficiency},
              {"bytes_per_worker", result.bytes_per_worker}};
}

void add_pictures(Json& result, const Trace& trace, const Cluster& cluster,
                  const NamedStrategy& strategy, const Timeline& timeline) {
  constexpr int kSteps = 8;
  result["hidden_communication_seconds"] = report::hidden_communication(timeline).count();
  result["timeline"] = report::step_timeline(timeline, kPageWorkers);
  const World world(cluster);
  const BucketPlan buckets = strategy->buckets(trace, CostModel(cluster), world);
  const int period = strategy->traits_with(world, buckets).period;
  result["groups"] = Json::array();
  for (Step step = 0; step < (period == 0 ? kSteps : std::min(period, kSteps)); ++step)
    result["groups"].push_back(report::group_lists(strategy->program(step, world, buckets), 0));
}

}  // namespace riffle::cli
