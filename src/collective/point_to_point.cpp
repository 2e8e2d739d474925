#include "collective/point_to_point.h"

#include <map>

#include "collective/choice.h"
#include "riffle/error.h"

namespace riffle::collective {
namespace {

constexpr int lanes = 16;

}  // namespace

PointToPoint::PointToPoint(Engine& engine, const PointToPointOptions& options)
    : engine_(&engine), options_(options), lanes_(lanes) {
  std::map<std::string_view, int> numbers;
  for (Rank rank = 0; rank < engine.size(); ++rank)
    hosts_.push_back(
        numbers.emplace(engine.host(rank), static_cast<int>(numbers.size())).first->second);
  for (Lane& lane : lanes_) lane.calls.resize(static_cast<std::size_t>(engine.size()));
}

std::unique_ptr<PatternOperation> PointToPoint::start(Call call, Deadline deadline) {
  if (!call.group.contains(engine_->rank()))
    usage_error("{}: rank {} is no member of {}", name_of(call.operation), engine_->rank(),
                print(call.group));
  validate(call);
  if (call.operation == Operation::barrier) call.data = {};
  const auto hosts = racks_of(call.group);
  const bool far = hosts.size() > 1;
  if (call.racks.empty()) call.racks = hosts;
  if (call.algorithm == Algorithm::automatic)
    call.algorithm = default_algorithm(
        call.operation, call.group.size(),
        Bytes{static_cast<std::int64_t>(call.data.count) * size_of(call.data.dtype).count},
        call.racks);
  const Pace pace{.window = far ? options_.far_window : options_.window,
                  .eager = far ? options_.eager : std::size_t(-1)};
  Plan plan(call, options_.piece);
  CallTags tags = tags_for(call);
  return std::make_unique<PatternOperation>(*engine_, scratch_, std::move(call), std::move(plan),
                                            std::move(tags), pace, deadline);
}

CallTags PointToPoint::tags_for(const Call& call) {
  const std::scoped_lock lock(mutex_);
  Lane& lane = lanes_[static_cast<std::size_t>(call.lane)];
  if (call.epoch < lane.epoch)
    usage_error("{}: epoch {} after epoch {}", name_of(call.operation), call.epoch, lane.epoch);
  if (call.epoch > lane.epoch) {
    lane.epoch = call.epoch;
    lane.calls.assign(lane.calls.size(), 0);
  }
  CallTags tags;
  tags.channel = (static_cast<std::uint64_t>(call.epoch) << 32) |
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
