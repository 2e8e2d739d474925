#include "collective/point_to_point.h"

#include "collective/choice.h"
#include "collective/parts.h"
#include "collective/rounding.h"
#include "riffle/error.h"

namespace riffle::collective {
namespace {

constexpr int lanes = 16;
constexpr std::uint64_t channel_bit = std::uint64_t{1} << 63;  // no lane has it

}  // namespace

PointToPoint::PointToPoint(Engine& engine, const PointToPointOptions& options)
    : engine_(&engine), options_(options), lanes_(lanes) {
  std::map<std::string_view, int> numbers;
  for (Rank rank = 0; rank < engine.size(); ++rank)
    hosts_.push_back(
        numbers.emplace(engine.host(rank), static_cast<int>(numbers.size())).first->second);
  for (Lane& lane : lanes_) lane.calls.resize(static_cast<std::size_t>(engine.size()));
}

void PointToPoint::check(const Call& call) const {
  if (!call.group.contains(engine_->rank()))
    usage_error("{}: rank {} is no member of {}", name_of(call.operation), engine_->rank(),
                print(call.group));
  validate(call);
}

void PointToPoint::run(const Call& call, const Collectives::Parts& parts, Deadline deadline) {
  check(call);
  exchange_parts(*engine_, call, parts, tags_for(call), deadline);
}

std::unique_ptr<PatternOperation> PointToPoint::start(Call call, Deadline deadline) {
  check(call);
  if (call.operation == Operation::barrier) call.data = {};
  const auto hosts = racks_of(call.group);
  const bool far = hosts.size() > 1;
  if (call.racks.empty()) call.racks = hosts;
  if (call.algorithm == Algorithm::automatic)
    call.algorithm = default_algorithm(
        call.operation, call.group.size(),
        Bytes{static_cast<std::int64_t>(bytes_sent(call, {0, call.data.count}))}, call.racks);
  const bool given = call.piece.count > 0;
  const Bytes piece = given ? call.piece : Bytes{static_cast<std::int64_t>(options_.piece)};
  const std::size_t eager = given ? static_cast<std::size_t>(piece.count) : options_.eager;
  const Pace pace{.window = far ? options_.far_window : options_.window,
                  .eager = far ? eager : std::size_t(-1)};
  Plan plan(call, piece);
  CallTags tags = tags_for(call);
  return std::make_unique<PatternOperation>(*engine_, scratch_, std::move(call), std::move(plan),
                                            std::move(tags), pace, deadline);
}

PointToPoint::Lane& PointToPoint::lane_of(const Call& call) {
  if (call.channel == 0) return lanes_[static_cast<std::size_t>(call.lane)];
  Lane& lane = channels_[call.channel];
  lane.calls.resize(static_cast<std::size_t>(engine_->size()));
  return lane;
}

CallTags PointToPoint::tags_for(const Call& call) {
  const std::scoped_lock lock(mutex_);
  Lane& lane = lane_of(call);
  if (call.epoch < lane.epoch)
    usage_error("{}: epoch {} after epoch {}", name_of(call.operation), call.epoch, lane.epoch);
  if (call.epoch > lane.epoch) {
    lane.epoch = call.epoch;
    lane.calls.assign(lane.calls.size(), 0);
  }
  CallTags tags;
  tags.channel = call.channel != 0
                     ? call.channel | channel_bit
                     : (static_cast<std::uint64_t>(call.epoch) << 32) |
                           (static_cast<std::uint64_t>(call.lane) << 16) | 0x7032;  // "p2"
  for (const Rank rank : call.group)
    tags.sequence.push_back(lane.calls[static_cast<std::size_t>(rank)]++);
  return tags;
}

std::vector<std::vector<int>> PointToPoint::racks_of(const Group& group) const {
  std::map<int, std::vector<int>> by_host;
  int position = 0;
  for (const Rank rank : group)
    by_host[hosts_[static_cast<std::size_t>(rank)]].push_back(position++);
  std::vector<std::vector<int>> racks;
  for (auto& [host, positions] : by_host) racks.push_back(std::move(positions));
  return racks;
}

}  // namespace riffle::collective
