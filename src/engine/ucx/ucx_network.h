// The network over UCX: chunks are active messages, each with a header of ours in front.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/network.h"
#include "engine/ucx/worker.h"

namespace riffle::engine {

class UcxNetwork final : public Network {
 public:
  explicit UcxNetwork(const NetworkOptions& options);
  ~UcxNetwork() override;
  UcxNetwork(const UcxNetwork&) = delete;
  UcxNetwork& operator=(const UcxNetwork&) = delete;

  [[nodiscard]] std::string address() const override { return worker_.address(); }
  void open(std::vector<std::string> addresses, Events& events) override;
  [[nodiscard]] std::size_t chunk_bytes(Rank /*to*/) const override { return ucx_chunk_bytes; }
  [[nodiscard]] bool has_room(Rank to) const override;
  void send(Rank to, const Chunk& chunk, std::span<const std::byte> data, std::uint64_t request,
            std::shared_ptr<const void> keep) override;
  [[nodiscard]] std::size_t bytes_on_the_way(Rank) const override { return 0; }
  bool progress() override;
  void abandon(Rank peer) override;
  void leave(Rank culprit, Deadline deadline, const std::function<bool(Rank)>& failed) override;
  [[nodiscard]] int event_fd() const override { return worker_.event_fd(); }
  [[nodiscard]] bool arm() override { return ucp_worker_arm(worker_.get()) == UCS_OK; }

 private:
  enum class Kind : std::uint32_t { data, goodbye, farewell };  // a farewell answers a goodbye
  struct Header {
    std::uint64_t session = 0;
    std::uint32_t from = 0;
    Kind kind = Kind::data;
    std::uint64_t sequence = 0;  // of this sender: networks may deliver by several ways
    Chunk chunk;
  };
  struct Early {
    Header header;
    std::vector<std::byte> data;
  };
  struct Peer {
    UcxNetwork* network = nullptr;
    Rank rank = 0;
    std::string address;
    ucp_ep_h endpoint = nullptr;
    std::uint64_t next_out = 0;
    std::uint64_t next_in = 0;
    std::map<std::uint64_t, Early> early;
    int in_flight = 0;
    bool lost = false;
    bool broken = false;    // lost, and its endpoint is still to be closed
    bool has_sent = false;  // we have heard from it
    bool left = false;      // it has said goodbye
    bool answered = false;  // our goodbye
  };
  struct Flight {  // a message that UCX works on
    Peer* peer = nullptr;
    Header header;
    std::uint64_t request = 0;
    std::shared_ptr<const void> keep;
  };

  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes,
                                 void* data, std::size_t bytes, const ucp_am_recv_param_t* how);
  static void on_sent(void* request, ucs_status_t status, void* flight);
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  void take(const Header& header, std::span<const std::byte> data);
  void deliver(Peer& peer, const Header& header, std::span<const std::byte> data);
  bool connect(Peer& peer);
  void post(Peer& peer, Kind kind, const Chunk& chunk, std::span<const std::byte> data,
            std::uint64_t request, std::shared_ptr<const void> keep);
  void landed(Flight& flight);
  void lose(Peer& peer);
  void close(Peer& peer);
  void answer();

  NetworkOptions options_;
  UcxWorker worker_;
  Events* events_ = nullptr;
  std::vector<Peer> peers_;  // by rank
  std::vector<std::unique_ptr<Flight>> flights_;
  std::vector<Flight*> free_;
  std::vector<Rank> to_answer_;  // who needs a connection, a farewell or to be closed
};

}  // namespace riffle::engine
