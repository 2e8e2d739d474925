#include "runtime/checkpoint.h"

#include <cstring>

#include "base/json.h"
#include "base/text.h"
#include "riffle/error.h"

namespace riffle::runtime {
namespace {

constexpr int kVersion = 5;
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

Json parts_json(const Parts& parts) {
  Json json = Json::array();
  for (const Part& part : parts)
    json.push_back({{"dtype", name_of(part.dtype)}, {"elements", part.count}});
  return json;
}

Parts read_parts(const JsonReader& reader) {
  Parts parts;
  for (std::size_t i = 0; i < reader.size(); ++i) {
    const JsonReader each = reader.at(i);
    parts.push_back(
        {.dtype = parse_dtype(each.at("dtype").text(), each.at("dtype").where()),
         .count = static_cast<std::size_t>(each.at("elements").integer(0, std::int64_t{1} << 50))});
  }
  return parts;
}

void append(std::vector<std::byte>& bytes, Memory& memory, const TensorView& values) {
  const std::size_t begin = bytes.size();
  bytes.resize(begin + bytes_of(values));
  memory.read(std::span(bytes).subspan(begin), values);
}

// Memory in the order it was written.
class MemoryReader {
 public:
  MemoryReader(std::span<const std::byte> bytes, Memory& memory) : bytes_(bytes), memory_(memory) {}
  void read(const TensorView& into) {
    const std::size_t size = bytes_of(into);
    if (size > bytes_.size()) usage_error("{}: cut off", kSource);
    memory_.write(into, bytes_.first(size));
    bytes_ = bytes_.subspan(size);
  }
  Flat read(const Parts& parts) {
    Flat flat(memory_, parts);
    for (const TensorView& each : flat.parts()) read(each);
    return flat;
  }
  void expect_end() const {
    if (!bytes_.empty()) usage_error("{}: {} bytes too many", kSource, bytes_.size());
  }

 private:
  std::span<const std::byte> bytes_;
  Memory& memory_;
};

// Of a flight that has arrived: any other has what was lost in its result.
bool keeps_lost(const Exchange& exchange) {
  return exchange.merge.kind == Merge::Kind::outer && exchange.wire != Wire::f32 &&
         exchange.feedback;
}

FlightPtr read_flight(const JsonReader& from, MemoryReader& memory, Rank rank, Step step,
                      const Layout& layout) {
  auto flight = std::make_shared<Flight>();
  flight->id = {from.at("step").integer(0, step - 1),
                static_cast<int>(from.at("index").integer(0, 1 << 30))};
  const JsonReader exchange = from.at("exchange");
  const Program program = program_from_json(exchange.text(), exchange.where());
  if (program.exchanges.size() != 1) exchange.fail("not one exchange");
  flight->exchange = program.exchanges.front();
  if (flight->exchange.bucket < 0 ||
      flight->exchange.bucket >= static_cast<int>(layout.buckets.size()) ||
      !flight->exchange.group.contains(rank))
    exchange.fail("of another session");
  flight->parts = read_parts(from.at("parts"));
  if (!flight->parts.empty()) {
    flight->travelling = memory.read(flight->parts);
    flight->data = flight->travelling.parts();
    if (flight->exchange.merge.kind == Merge::Kind::correct)
      flight->own = memory.read(flight->parts);
    if (keeps_lost(flight->exchange)) flight->lost = memory.read(flight->parts);
  }
  flight->stage = Flight::Stage::done;
  return flight;
}

}  // namespace

std::optional<Resumed> read_resumed(std::span<const std::byte> bytes, const Identity& identity) {
  if (bytes.empty()) return std::nullopt;
  const Split parts = split(bytes);
  const JsonReader header(parts.header, std::string(kSource));
  header.expect_document("session", kVersion);
  const auto expect = [&](std::string_view key, std::string_view now) {
    if (header.at(key).text() != now) header.at(key).fail(fmt::format("now it is {}", now));
  };
  expect("strategy", identity.strategy);
  if (header.at("model").text() != fingerprint(identity.model))
    usage_error("{}: of a model with other parameters", kSource);
  if (header.at("rank").integer(0, 1 << 30) != identity.rank)
    header.at("rank").fail(fmt::format("this is rank {}", identity.rank));
  if (header.at("workers").integer(1, 1 << 30) != identity.workers)
    header.at("workers").fail(fmt::format("now there are {}", identity.workers));
  Resumed resumed{.cluster = header.at("cluster").text(),
                  .trace = header.at("trace").text(),
                  .step = header.at("step").integer(0, kMostWhole),
                  .layers_each = {},
                  .running = header.at("running").text(),
                  .plan = header.at("plan").text(),
                  .measured = header.at("measured").boolean()};
  const JsonReader layers = header.at("layers_each");
  for (std::size_t i = 0; i < layers.size(); ++i)
    resumed.layers_each.push_back(static_cast<int>(layers.at(i).integer(1, 1 << 30)));
  return resumed;
}

std::vector<std::byte> write_checkpoint(const Identity& identity, const Agreement& agreed,
                                        const Running& running, Step step, const Values& values,
                                        const std::vector<FlightPtr>& flights) {
  Json header{{"riffle", "session"},
              {"version", kVersion},
              {"strategy", identity.strategy},
              {"running", running.strategy.spec},
              {"plan", running.plan ? to_json(*running.plan) : ""},
              {"measured", agreed.measured},
              {"model", fingerprint(identity.model)},
              {"rank", identity.rank},
              {"workers", identity.workers},
              {"step", step},
              {"cluster", to_json(agreed.world.cluster)},
              {"trace", to_json(agreed.trace)},
              {"layers_each", Json::array()},
              {"flights", Json::array()}};
  for (const Bucket& bucket : values.layout().buckets)
    header["layers_each"].push_back(bucket.last - bucket.first + 1);
  std::vector<std::byte> memory;
  for (const FlightPtr& flight : flights) {
    header["flights"].push_back(
        {{"step", flight->id.step},
         {"index", flight->id.index},
         {"exchange", to_json(Program{{flight->exchange}})},  // its groups may be of the past
         {"parts", parts_json(flight->parts)}});
    std::vector<const Flat*> flats{&flight->travelling, &flight->own};
    if (keeps_lost(flight->exchange)) flats.push_back(&flight->lost);
    for (const Flat* flat : flats)
      for (const TensorView& each : flat->parts()) append(memory, values.memory(), each);
  }
  for (const TensorView& each : values.lasting()) append(memory, values.memory(), each);
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  std::vector<std::byte> bytes(sizeof(size) + text.size());
  std::memcpy(bytes.data(), &size, sizeof(size));
  std::memcpy(bytes.data() + sizeof(size), text.data(), text.size());
  bytes.insert(bytes.end(), memory.begin(), memory.end());
  return bytes;
}

std::vector<FlightPtr> restore(std::span<const std::byte> bytes, Rank rank, Step step,
                               Values& values) {
  const Split parts = split(bytes);
  const JsonReader list = JsonReader(parts.header, std::string(kSource)).at("flights");
  MemoryReader memory(parts.memory, values.memory());
  std::vector<FlightPtr> flights;
  for (std::size_t i = 0; i < list.size(); ++i)
    flights.push_back(read_flight(list.at(i), memory, rank, step, values.layout()));
  values.start_lasting();
  for (const TensorView& each : values.lasting()) memory.read(each);
  memory.expect_end();
  return flights;
}

}  // namespace riffle::runtime
