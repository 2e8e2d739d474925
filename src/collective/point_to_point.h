// Collectives as point-to-point messages, on any engine and over any list of ranks.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "collective/execute_pattern.h"
#include "pattern/pieces.h"

namespace riffle::collective {

struct PointToPointOptions {
  // Blocks travel in pieces of about this size, so that transfer and addition overlap. A call may
  // say another.
  std::size_t piece = std::size_t{256} << 10;
  // How many pieces of a block are under way at a time.
  int window = 3;
  // The same between hosts, where more must be on the way to fill it.
  int far_window = pattern::kWindow;
  // Between hosts: bytes for a member that may not have begun the call; no more than a piece where
  // the call says how much that is.
  std::size_t eager = std::size_t{256} << 10;
};

// May be used by several threads; the calls of one lane must come one after the other.
class PointToPoint {
 public:
  explicit PointToPoint(Engine& engine, const PointToPointOptions& options = {});

  // Starts a call: `automatic` is resolved here. UsageError as validate() says, or when this rank
  // is no member. The engine and this object must outlive the operation.
  std::unique_ptr<PatternOperation> start(Call call, Deadline deadline);
  // Runs a call to its end.
  void run(Call call, Deadline deadline) { start(std::move(call), deadline)->wait(); }
  // The same for all_to_all, gather and scatter.
  void run(const Call& call, const Collectives::Parts& parts, Deadline deadline);

 private:
  // Calls shared with each rank on one lane in the present epoch.
  struct Lane {
    std::uint32_t epoch = 0;
    std::vector<std::uint32_t> calls;
  };

  void check(const Call& call) const;
  CallTags tags_for(const Call& call);
  Lane& lane_of(const Call& call);
  [[nodiscard]] std::vector<std::vector<int>> racks_of(const Group& group) const;

  Engine* engine_;
  PointToPointOptions options_;
  std::vector<int> hosts_;  // by rank: a number for its host
  ScratchPool scratch_;
  std::mutex mutex_;
  std::vector<Lane> lanes_;                 // under mutex_
  std::map<std::uint64_t, Lane> channels_;  // under mutex_
};

}  // namespace riffle::collective
