#include "riffle/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/json.h"
#include "base/text.h"
#include "model/group_json.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr int kProgramVersion = 1;
constexpr std::array<std::string_view, 4> kPayloads{"gradient", "weight", "buffers", "state"};
constexpr std::array<std::string_view, 5> kCollectives{"all_reduce", "reduce_scatter", "all_gather",
                                                       "shift", "serve"};
constexpr std::array<std::string_view, 4> kStarts{"bucket_ready", "bucket_stepped", "backward_done",
                                                  "step_done"};
constexpr std::array<std::string_view, 3> kDuePoints{"before_step", "after_step", "before_forward"};
constexpr std::array<std::string_view, 4> kMerges{"replace", "mix", "correct", "outer"};
constexpr std::array<std::string_view, 4> kWires{"f32", "bf16", "f16", "int8"};

template <typename Enum, std::size_t n>
Enum parse_enum(const std::array<std::string_view, n>& names, std::string_view text,
                std::string_view kind, std::string_view what) {
  for (std::size_t i = 0; i < n; ++i)
    if (names[i] == text) return static_cast<Enum>(i);
  const std::vector<std::string> known(names.begin(), names.end());
  usage_error("{}: {}", what, unknown_name(kind, text, known));
}

template <typename Enum, std::size_t n>
Enum read_enum(const std::array<std::string_view, n>& names, const JsonReader& reader,
               std::string_view key) {
  const JsonReader field = reader.at(key);
  return parse_enum<Enum>(names, field.text(), key, field.where());
}

Json merge_json(const Merge& merge) {
  Json json{{"kind", name_of(merge.kind)}};
  if (merge.kind == Merge::Kind::mix) json["xi"] = merge.xi;
  if (merge.kind == Merge::Kind::correct) json["scale"] = merge.scale;
  if (merge.kind == Merge::Kind::outer) {
    json["learning_rate"] = merge.learning_rate;
    json["momentum"] = merge.momentum;
    if (!merge.nesterov) json["nesterov"] = false;
    if (merge.xi != 0) json["xi"] = merge.xi;
  }
  return json;
}

Merge read_merge(const JsonReader& reader) {
  switch (read_enum<Merge::Kind>(kMerges, reader, "kind")) {
    case Merge::Kind::mix:
      return mix(reader.at("xi").number());
    case Merge::Kind::correct:
      return correct(reader.at("scale").number());
    case Merge::Kind::outer:
      return outer(reader.at("learning_rate").number(), reader.at("momentum").number(),
                   !reader.has("nesterov") || reader.at("nesterov").boolean(),
                   reader.has("xi") ? reader.at("xi").number() : 0);
    case Merge::Kind::replace:
      break;
  }
  return replace();
}

std::string print_merge(const Merge& merge) {
  switch (merge.kind) {
    case Merge::Kind::mix:
      return fmt::format("mix {}", merge.xi);
    case Merge::Kind::correct:
      return fmt::format("correct {}", merge.scale);
    case Merge::Kind::outer:
      return fmt::format("outer {} momentum {}{}{}", merge.learning_rate, merge.momentum,
                         merge.nesterov ? "" : " heavy-ball",
                         merge.xi != 0 ? fmt::format(" xi {}", merge.xi) : "");
    case Merge::Kind::replace:
      break;
  }
  return "replace";
}

Exchange read_exchange(const JsonReader& reader) {
  Exchange exchange;
  exchange.bucket = static_cast<int>(reader.at("bucket").integer(0, 1 << 30));
  exchange.payload = read_enum<Payload>(kPayloads, reader, "payload");
  const JsonReader group = reader.at("group");
  exchange.group = model::read_group(group, 1 << 30);
  if (reader.has("weights")) {
    const JsonReader weights = reader.at("weights");
    if (weights.size() != group.size()) weights.fail("needs one weight per member");
    for (std::size_t i = 0; i < weights.size(); ++i)
      exchange.weights.push_back(weights.at(i).number_at_least(0));
  }
  if (reader.has("scales")) {
    const JsonReader scales = reader.at("scales");
    if (scales.size() != group.size()) scales.fail("needs one scale per member");
    for (std::size_t i = 0; i < scales.size(); ++i)
      exchange.scales.push_back(scales.at(i).number());
  }
  exchange.collective = read_enum<Collective>(kCollectives, reader, "collective");
  if (exchange.collective == Collective::shift)
    exchange.shift = static_cast<int>(reader.at("shift").integer(0, 1 << 30));
  if (reader.has("ahead"))
    exchange.ahead = static_cast<int>(reader.at("ahead").integer(0, 1 << 30));
  exchange.algorithm =
      parse_algorithm(reader.at("algorithm").text(), reader.at("algorithm").where());
  exchange.lane = static_cast<int>(reader.at("lane").integer(0, 1 << 20));
  exchange.start = read_enum<Start>(kStarts, reader, "start");
  const JsonReader due = reader.at("due");
  exchange.due = {static_cast<int>(due.at("steps").integer(0, 1 << 20)),
                  read_enum<DuePoint>(kDuePoints, due, "point")};
  exchange.merge = read_merge(reader.at("merge"));
  exchange.wire = read_enum<Wire>(kWires, reader, "wire");
  if (reader.has("feedback")) exchange.feedback = reader.at("feedback").boolean();
  return exchange;
}

}  // namespace

std::string_view name_of(Payload payload) {
  return kPayloads.at(static_cast<std::size_t>(payload));
}
std::string_view name_of(Collective collective) {
  return kCollectives.at(static_cast<std::size_t>(collective));
}
std::string_view name_of(Start start) {
  return kStarts.at(static_cast<std::size_t>(start));
}
std::string_view name_of(DuePoint point) {
  return kDuePoints.at(static_cast<std::size_t>(point));
}
std::string_view name_of(Merge::Kind kind) {
  return kMerges.at(static_cast<std::size_t>(kind));
}
std::string_view name_of(Wire wire) {
  return kWires.at(static_cast<std::size_t>(wire));
}
Wire parse_wire(std::string_view text, std::string_view what) {
  return parse_enum<Wire>(kWires, text, "wire", what);
}

std::string print(const Exchange& exchange) {
  std::string text = fmt::format("bucket {} {} {}", exchange.bucket, name_of(exchange.payload),
                                 name_of(exchange.collective));
  if (exchange.collective == Collective::shift) text += fmt::format("({})", exchange.shift);
  if (exchange.ahead >= 0) text += fmt::format(" ({} ahead at most)", exchange.ahead);
  text += fmt::format(" {}, {} -> {}", print(exchange.group), name_of(exchange.start),
                      name_of(exchange.due.point));
  if (exchange.due.steps > 0) text += fmt::format(" +{}", exchange.due.steps);
  text += fmt::format(", {}", print_merge(exchange.merge));
  if (!exchange.weights.empty())
    text += fmt::format(", weights {}", fmt::join(exchange.weights, " "));
  if (!exchange.scales.empty()) text += fmt::format(", scales {}", fmt::join(exchange.scales, " "));
  if (exchange.algorithm != Algorithm::automatic)
    text += fmt::format(", {}", name_of(exchange.algorithm));
  if (exchange.lane != 0) text += fmt::format(", lane {}", exchange.lane);
  if (exchange.wire != Wire::f32) text += fmt::format(", wire {}", name_of(exchange.wire));
  if (!exchange.feedback) text += " without feedback";
  return text;
}

std::string print(const Program& program) {
  std::string text;
  for (const Exchange& exchange : program.exchanges) text += print(exchange) + "\n";
  return text;
}

std::string to_json(const Program& program) {
  Json json{{"riffle", "program"}, {"version", kProgramVersion}, {"exchanges", Json::array()}};
  for (const Exchange& exchange : program.exchanges) {
    Json entry{{"bucket", exchange.bucket},
               {"payload", name_of(exchange.payload)},
               {"group", exchange.group.ranks()}};
    if (!exchange.weights.empty()) entry["weights"] = exchange.weights;
    if (!exchange.scales.empty()) entry["scales"] = exchange.scales;
    entry["collective"] = name_of(exchange.collective);
    if (exchange.collective == Collective::shift) entry["shift"] = exchange.shift;
    if (exchange.ahead >= 0) entry["ahead"] = exchange.ahead;
    entry["algorithm"] = name_of(exchange.algorithm);
    entry["lane"] = exchange.lane;
    entry["start"] = name_of(exchange.start);
    entry["due"] = Json{{"steps", exchange.due.steps}, {"point", name_of(exchange.due.point)}};
    entry["merge"] = merge_json(exchange.merge);
    entry["wire"] = name_of(exchange.wire);
    if (!exchange.feedback) entry["feedback"] = false;
    json["exchanges"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

Program program_from_json(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  const JsonReader reader(json, std::string(source));
  reader.expect_document("program", kProgramVersion);
  const JsonReader list = reader.at("exchanges");
  Program program;
  for (std::size_t i = 0; i < list.size(); ++i) program.add(read_exchange(list.at(i)));
  return program;
}

}  // namespace riffle
