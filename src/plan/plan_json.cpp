// A plan as a document: what `riffle plan --plan-file` writes and sessions read.
#include "base/files.h"
#include "riffle/error.h"
#include "riffle/plan.h"
#include "simulate/report.h"

namespace riffle {
namespace {

constexpr int kVersion = 1;

Candidate read_candidate(const JsonReader& from) {
  Candidate candidate{.spec = from.at("spec").text(),
                      .simulation = read_simulation(from),
                      .effective_step = from.at("effective_step").number_at_least(0),
                      .per_effective_step = from.at("seconds_per_effective_step").seconds(),
                      .exact = from.at("exact").boolean(),
                      .reason = from.at("reason").text()};
  if (from.has("warnings"))
    for (std::size_t i = 0; i < from.at("warnings").size(); ++i)
      candidate.warnings.push_back(from.at("warnings").at(i).text());
  if (from.has("measured_seconds")) candidate.measured = from.at("measured_seconds").seconds();
  return candidate;
}

}  // namespace

std::string to_json(const Plan& plan) {
  Json json{{"riffle", "plan"},
            {"version", kVersion},
            {"model", plan.model},
            {"cluster", plan.cluster},
            {"limit",
             {{"what", plan.limit.what}, {"link", plan.limit.link}, {"share", plan.limit.share}}},
            {"candidates", Json::array()}};
  for (const Candidate& candidate : plan.candidates) {
    Json entry = json_of(candidate.simulation);
    entry["spec"] = candidate.spec;
    entry["exact"] = candidate.exact;
    entry["effective_step"] = candidate.effective_step;
    entry["seconds_per_effective_step"] = candidate.per_effective_step.count();
    entry["reason"] = candidate.reason;
    entry["warnings"] = candidate.warnings;
    if (candidate.measured) entry["measured_seconds"] = candidate.measured->count();
    json["candidates"].push_back(std::move(entry));
  }
  if (plan.trace) json["trace"] = Json::parse(to_json(*plan.trace));
  if (plan.network) json["network"] = Json::parse(to_json(*plan.network));
  return json.dump(1) + "\n";
}

Plan plan_from_json(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  const JsonReader reader(json, std::string(source));
  reader.expect_document("plan", kVersion);
  Plan plan{.model = reader.at("model").text(),
            .cluster = reader.at("cluster").text(),
            .limit = {.what = reader.at("limit").at("what").text(),
                      .link = reader.at("limit").at("link").text(),
                      .share = reader.at("limit").at("share").number()},
            .candidates = {}};
  const JsonReader candidates = reader.at("candidates");
  if (candidates.size() == 0) candidates.fail("no candidates");
  for (std::size_t i = 0; i < candidates.size(); ++i)
    plan.candidates.push_back(read_candidate(candidates.at(i)));
  const auto part = [&](const char* key) { return reader.at(key).where(); };
  if (reader.has("trace")) plan.trace = trace_from_json(json["trace"].dump(), part("trace"));
  if (reader.has("network"))
    plan.network = cluster_from_json(json["network"].dump(), part("network"));
  return plan;
}

Plan load_plan(const std::string& file) {
  return plan_from_json(read_file(file), file);
}

}  // namespace riffle
