#include "runtime/checkpoint.h"

#include <cstring>

#include "base/json.h"
#include "riffle/error.h"
#include "runtime/state.h"

namespace riffle {

using runtime::Flat;
using runtime::Flight;
using runtime::FlightPtr;
using runtime::Part;

namespace {

constexpr int kVersion = 2;
constexpr std::string_view kSource = "session state";

struct Split {
  Json header;
  std::span<const std::byte> memory;
};

Split split(std::span<const std::byte> bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof(size)) usage_error("{}: cut off at {} bytes", kSource, bytes.size());
  std::memcpy(&size, bytes.data(), sizeof(size));
  const auto rest = bytes.subspan(sizeof(size));
  if (size > rest.size()) usage_error("{}: cut off, or no session state", kSource);
  const auto text = rest.first(size);
  return {parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, kSource),
          rest.subspan(size)};
}

Json parts_json(const std::vector<Part>& parts) {
  Json json = Json::array();
  for (const Part& part : parts)
    json.push_back({{"dtype", name_of(part.dtype)},
                    {"elements", part.count},
                    {"statistics", part.statistics}});
  return json;
}

std::vector<Part> read_parts(const JsonReader& reader) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < reader.size(); ++i) {
    const JsonReader each = reader.at(i);
    parts.push_back(
        {.dtype = parse_dtype(each.at("dtype").text(), each.at("dtype").where()),
         .count = static_cast<std::size_t>(each.at("elements").integer(0, std::int64_t{1} << 50)),
         .statistics = each.at("statistics").boolean()});
  }
  return parts;
}

void append(std::vector<std::byte>& bytes, const Flat& flat) {
  bytes.insert(bytes.end(), flat.bytes().begin(), flat.bytes().end());
}

// Memory in the order it was written.
class MemoryReader {
 public:
  explicit MemoryReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void read(const Flat& into) {
    if (into.bytes().size() > bytes_.size()) usage_error("{}: cut off", kSource);
    std::memcpy(into.bytes().data(), bytes_.data(), into.bytes().size());
    bytes_ = bytes_.subspan(into.bytes().size());
  }
  void expect_end() const {
    if (!bytes_.empty()) usage_error("{}: {} bytes too many", kSource, bytes_.size());
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

namespace runtime {

std::optional<Resumed> read_resumed(std::span<const std::byte> bytes, const NamedStrategy& strategy,
                                    const ModelSpec& model, const Engine& engine) {
  if (bytes.empty()) return std::nullopt;
  const Split parts = split(bytes);
  const JsonReader header(parts.header, std::string(kSource));
  header.expect_document("session", kVersion);
  const auto expect = [&](std::string_view key, std::string_view now) {
    if (header.at(key).text() != now) header.at(key).fail(fmt::format("now it is {}", now));
  };
  expect("strategy", strategy.spec);
  if (header.at("model").text() != fingerprint(model))
    usage_error("{}: of a model with other parameters", kSource);
  if (header.at("rank").integer(0, 1 << 30) != engine.rank())
    header.at("rank").fail(fmt::format("this is rank {}", engine.rank()));
  if (header.at("workers").integer(1, 1 << 30) != engine.size())
    header.at("workers").fail(fmt::format("now there are {}", engine.size()));
  Resumed resumed{.cluster = header.at("cluster").text(),
                  .trace = header.at("trace").text(),
                  .step = header.at("step").integer(0, std::int64_t{1} << 53),
                  .layers_each = {}};
  const JsonReader layers = header.at("layers_each");
  for (std::size_t i = 0; i < layers.size(); ++i)
    resumed.layers_each.push_back(static_cast<int>(layers.at(i).integer(1, 1 << 30)));
  return resumed;
}

}  // namespace runtime

std::vector<std::byte> Session::State::save() {
  dispatcher.throw_if_failed();
  settle();
  Json header{{"riffle", "session"},
              {"version", kVersion},
              {"strategy", strategy.spec},
              {"model", runtime::fingerprint(model)},
              {"rank", engine.rank()},
              {"workers", engine.size()},
              {"step", step},
              {"cluster", to_json(agreed.world.cluster)},
              {"trace", to_json(agreed.trace)},
              {"layers_each", Json::array()},
              {"flights", Json::array()}};
  for (const Bucket& bucket : layout.buckets)
    header["layers_each"].push_back(bucket.last - bucket.first + 1);
  std::vector<std::byte> memory;
  for (const FlightPtr& flight : delayed()) {
    header["flights"].push_back(
        {{"step", flight->step},
         {"index", flight->index},
         {"exchange", to_json(Program{{flight->exchange}})},  // its groups may be of the past
         {"parts", parts_json(flight->parts)}});
    append(memory, flight->travelling);
    append(memory, flight->own);
  }
  for (const runtime::OuterMemory& each : outer) {
    append(memory, each.agreed);
    append(memory, each.momentum);
  }
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  std::vector<std::byte> bytes(sizeof(size) + text.size());
  std::memcpy(bytes.data(), &size, sizeof(size));
  std::memcpy(bytes.data() + sizeof(size), text.data(), text.size());
  bytes.insert(bytes.end(), memory.begin(), memory.end());
  return bytes;
}

void Session::State::restore() {
  const Split parts = split(options.resume);
  const JsonReader header(parts.header, std::string(kSource));
  const JsonReader list = header.at("flights");
  MemoryReader memory(parts.memory);
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto flight = std::make_shared<Flight>();
    flight->step = list.at(i).at("step").integer(0, step - 1);
    flight->index = static_cast<int>(list.at(i).at("index").integer(0, 1 << 30));
    const JsonReader exchange = list.at(i).at("exchange");
    const Program program = program_from_json(exchange.text(), exchange.where());
    if (program.exchanges.size() != 1) exchange.fail("not one exchange");
    flight->exchange = program.exchanges.front();
    if (flight->exchange.bucket < 0 ||
        flight->exchange.bucket >= static_cast<int>(layout.buckets.size()) ||
        !flight->exchange.group.contains(engine.rank()))
      exchange.fail("of another session");
    flight->parts = read_parts(list.at(i).at("parts"));
    if (!flight->parts.empty()) {
      flight->travelling = Flat(engine, flight->parts);
      memory.read(flight->travelling);
      flight->data = flight->travelling.parts();
      if (flight->exchange.merge.kind == Merge::Kind::correct) {
        flight->own = Flat(engine, flight->parts);
        memory.read(flight->own);
      }
    }
    flight->stage = Flight::Stage::done;
    flights.at(flight->exchange.bucket).push_back(std::move(flight));
  }
  start_outer();
  for (const runtime::OuterMemory& each : outer) {
    memory.read(each.agreed);
    memory.read(each.momentum);
  }
  memory.expect_end();
}

}  // namespace riffle
