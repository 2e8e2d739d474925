#include "base/json.h"
#include "race/race.h"

namespace riffle::race {
namespace {

constexpr int version = 1;
constexpr std::int64_t most = std::int64_t{1} << 53;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json json_of(const Prediction& predicted) {
  return {{"compute_seconds", predicted.compute},
          {"exposed_communication_seconds", predicted.exposed}};
}

Json json_of(const std::vector<Evaluation>& evaluations) {
  Json list = Json::array();
  for (const Evaluation& each : evaluations)
    list.push_back(
        Json{{"step", each.step}, {"seconds", each.seconds}, {"accuracy", each.accuracy}});
  return list;
}

Json json_of(const Result& result) {
  Json json{{"contender", result.contender},
            {"seconds_per_step", or_null(result.seconds_per_step)},
            {"exposed_communication_seconds", or_null(result.exposed)},
            {"predicted_seconds_per_step",
             result.predicted ? Json(result.predicted->seconds_per_step) : Json()},
            {"final_loss", or_null(result.final_loss)},
            {"accuracy", or_null(result.accuracy)},
            {"seconds_to_target", or_null(result.seconds_to_target)},
            {"speedup", or_null(result.speedup)},
            {"failed", or_null(result.failed)},
            {"how", result.how},
            {"rank", result.rank > 0 ? Json(result.rank) : Json()},
            {"steps", result.steps},
            {"compute_seconds", or_null(result.compute)},
            {"hidden_communication_seconds", or_null(result.hidden)},
            {"predicted", result.predicted ? json_of(*result.predicted) : Json()},
            {"curve",
             {{"seconds", result.curve.seconds},
              {"loss", result.curve.loss},
              {"step", result.curve.step}}},
            {"evaluations", json_of(result.evaluations)},
            {"groups", or_null(result.groups)},
            {"timeline", result.timeline},
            {"timeline_file", or_null(result.timeline_file)}};
  return json;
}

// --- Reading. A field that is absent is as one that is null.

bool is_there(const JsonReader& from, std::string_view key) {
  return from.has(key) && !from.at(key).is_null();
}

std::optional<double> number(const JsonReader& from, std::string_view key) {
  if (!is_there(from, key)) return std::nullopt;
  return from.at(key).number();
}

std::string text(const JsonReader& from, std::string_view key) {
  return is_there(from, key) ? from.at(key).text() : "";
}

template <typename T, typename Read>
std::vector<T> list(const JsonReader& from, Read read) {
  std::vector<T> values;
  for (std::size_t i = 0; i < from.size(); ++i) values.push_back(read(from.at(i)));
  return values;
}

double a_number(const JsonReader& from) {
  return from.number();
}

Rank a_rank(const JsonReader& from) {
  return static_cast<Rank>(from.integer(-1, 1 << 30));
}

Step a_step(const JsonReader& from) {
  return from.integer(0, most);
}

Evaluation an_evaluation(const JsonReader& from) {
  return {a_step(from.at("step")), from.at("seconds").number(), from.at("accuracy").number()};
}

Groups some_groups(const JsonReader& from) {
  return list<std::vector<Rank>>(from,
                                 [](const JsonReader& group) { return list<Rank>(group, a_rank); });
}

Curve read_curve(const JsonReader& from) {
  Curve curve{list<double>(from.at("seconds"), a_number), list<double>(from.at("loss"), a_number),
              list<Step>(from.at("step"), a_step)};
  if (curve.loss.size() != curve.seconds.size() || curve.step.size() != curve.seconds.size())
    from.fail("seconds, loss and step must be equally long");
  return curve;
}

void read_lists(const JsonReader& from, Result& result) {
  if (is_there(from, "curve")) result.curve = read_curve(from.at("curve"));
  if (is_there(from, "evaluations"))
    result.evaluations = list<Evaluation>(from.at("evaluations"), an_evaluation);
  if (is_there(from, "groups")) result.groups = list<Groups>(from.at("groups"), some_groups);
}

Result read_result(const JsonReader& from) {
  Result result;
  result.contender = from.at("contender").text();
  result.failed = text(from, "failed");
  result.how = text(from, "how");
  if (is_there(from, "rank")) result.rank = static_cast<int>(from.at("rank").integer(0, 1 << 20));
  if (is_there(from, "steps")) result.steps = a_step(from.at("steps"));
  result.seconds_per_step = number(from, "seconds_per_step");
  result.exposed = number(from, "exposed_communication_seconds");
  result.hidden = number(from, "hidden_communication_seconds");
  result.compute = number(from, "compute_seconds");
  result.final_loss = number(from, "final_loss");
  result.accuracy = number(from, "accuracy");
  result.seconds_to_target = number(from, "seconds_to_target");
  result.speedup = number(from, "speedup");
  result.timeline_file = text(from, "timeline_file");
  if (const auto step = number(from, "predicted_seconds_per_step")) {
    result.predicted = Prediction{.seconds_per_step = *step};
    if (is_there(from, "predicted")) {
      result.predicted->compute = from.at("predicted").at("compute_seconds").number();
      result.predicted->exposed = from.at("predicted").at("exposed_communication_seconds").number();
    }
  }
  read_lists(from, result);
  return result;
}

}  // namespace

std::string to_json(const Race& race) {
  Json json{{"riffle", "race"},
            {"version", version},
            {"command", race.command},
            {"cluster", race.cluster},
            {"topology", Json::parse(riffle::to_json(race.topology))},
            {"dilate", race.dilate},
            {"shrink", race.shrink},
            {"task", or_null(race.task)},
            {"trace", or_null(race.trace)},
            {"target", or_null(race.target)},
            {"workers", race.topology.size()},
            {"seed", race.seed},
            {"events", race.events},
            {"interrupted", race.interrupted},
            {"results", Json::array()}};
  for (const Result& result : race.results) json["results"].push_back(json_of(result));
  return json.dump(1) + "\n";
}

Race race_from_json(std::string_view given, std::string_view source) {
  const Json json = parse_json(given, source);
  const JsonReader reader(json, std::string(source));
  reader.expect_document("race", version);
  Race race;
  race.command = text(reader, "command");
  race.cluster = text(reader, "cluster");
  const JsonReader topology = reader.at("topology");
  race.topology = cluster_from_json(json.at("topology").dump(), topology.where());
  race.dilate = reader.at("dilate").number_at_least(1);
  race.shrink = reader.at("shrink").number_at_least(1);
  race.task = text(reader, "task");
  race.trace = text(reader, "trace");
  race.target = number(reader, "target");
  if (is_there(reader, "seed"))
    race.seed = static_cast<std::uint64_t>(reader.at("seed").integer(0, most));
  race.events = text(reader, "events");
  race.interrupted = is_there(reader, "interrupted") && reader.at("interrupted").boolean();
  race.results = list<Result>(reader.at("results"), read_result);
  // Passed on as it is.
  for (std::size_t i = 0; i < race.results.size(); ++i)
    race.results[i].timeline = json.at("results").at(i).value("timeline", Json());
  return race;
}

}  // namespace riffle::race
