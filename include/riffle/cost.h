// What a collective costs: closed forms in latency, bandwidth and reduction cost, the choice of the
// cheapest algorithm, and measured curves. docs/cost.md has the formulas.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "riffle/bucket.h"
#include "riffle/program.h"
#include "riffle/trace.h"

namespace riffle {

// Time against size, piecewise linear, jumps allowed: each piece holds from its `from` up to the
// next piece's. The first piece starts at zero bytes.
class Curve {
 public:
  struct Piece {
    Bytes from;
    LinearCost cost;
    Algorithm algorithm = Algorithm::automatic;  // what the piece is the cost of, where known
    bool operator==(const Piece&) const = default;
  };

  explicit Curve(LinearCost cost) : pieces_{{Bytes{0}, cost, Algorithm::automatic}} {}
  // UsageError unless the pieces start at zero and ascend.
  explicit Curve(std::vector<Piece> pieces);
  // The cheapest of several straight lines at every size.
  static Curve cheapest(const std::vector<Piece>& lines);

  [[nodiscard]] Seconds operator()(Bytes size) const { return piece(size).cost(size); }
  [[nodiscard]] const Piece& piece(Bytes size) const;
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  bool operator==(const Curve&) const = default;

 private:
  std::vector<Piece> pieces_;
};

// The closed form of a collective over n workers of one switch, in units: its time for M bytes is
// latencies*alpha + bytes*M*beta + reduced*M*gamma. Messages and bytes are a mean over members
// where they differ.
struct ClosedForm {
  double latencies = 0;
  double bytes = 0;
  double reduced = 0;
  double messages_sent = 0;  // per member
  double bytes_sent = 0;     // per member, as a share of M
};
ClosedForm closed_form(Algorithm algorithm, Collective collective, int n);

// What one member of an exchange sends, on average over the group.
struct Traffic {
  double bytes = 0;
  double messages = 0;
};

// The largest group that `direct` is chosen for by itself: beyond it n-1 messages at once are no
// longer one latency on real hosts.
constexpr int kLargestDirect = 8;

// Costs of collectives on one cluster. Safe to use from several threads.
class CostModel {
 public:
  explicit CostModel(Cluster cluster) : cluster_(std::move(cluster)) {}
  // A measured all-reduce over all workers; it replaces the closed forms for that group.
  CostModel(Cluster cluster, Curve measured)
      : cluster_(std::move(cluster)), measured_(std::move(measured)) {}

  [[nodiscard]] const Cluster& cluster() const { return cluster_; }

  // Time against size. `automatic` takes the cluster's algorithm or, where that is automatic too,
  // the cheapest of those the runtime has. Zero for a group of one. UsageError for a group or a
  // collective that a fit does not know.
  [[nodiscard]] const Curve& curve(const Group& group,
                                   Collective collective = Collective::all_reduce,
                                   Algorithm algorithm = Algorithm::automatic, int shift = 0) const;
  [[nodiscard]] Seconds time(const Exchange& exchange, Bytes size) const;
  // What `automatic` means for this exchange and size.
  [[nodiscard]] Algorithm algorithm(const Exchange& exchange, Bytes size) const;
  [[nodiscard]] Traffic traffic(const Exchange& exchange, Bytes size) const;

 private:
  [[nodiscard]] Curve compute(const Group& group, Collective collective, Algorithm algorithm,
                              int shift) const;
  // The cost of an algorithm is the least of these.
  void add_lines(const Group& group, Collective collective, Algorithm algorithm, int shift,
                 std::vector<Curve::Piece>& lines) const;

  Cluster cluster_;
  std::optional<Curve> measured_;
  // Groups recur in every step; the key's group keeps its identity alive.
  using Key = std::tuple<const void*, Collective, Algorithm, int>;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::pair<Group, Curve>> cache_;
};

// The bytes of one payload of a bucket.
Bytes payload_bytes(const Bucket& bucket, Payload payload);
// The bytes that travel for a payload of `size` in elements of `dtype`.
Bytes wire_bytes(Bytes size, DType dtype, Wire wire);
// What travels of a bucket in an exchange, its values being of `dtype`.
Bytes exchanged_bytes(const Bucket& bucket, const Exchange& exchange, DType dtype);

}  // namespace riffle
