#include "engine/ucx/ucx_network.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "riffle/error.h"
#include "riffle/make_engine.h"

namespace riffle::engine {

namespace {

constexpr unsigned message_id = 7;
// Enough to keep a connection busy; little enough that a request can be withdrawn soon.
constexpr int window = 4;
constexpr auto longest_close = std::chrono::seconds(2);

}  // namespace

std::unique_ptr<Network> make_ucx_network(const NetworkOptions& options) {
  return std::make_unique<UcxNetwork>(options);
}

UcxNetwork::UcxNetwork(const NetworkOptions& options)
    : options_(options), worker_(options.interface) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message_id;
  handler.cb = on_message;
  handler.arg = this;
  RIFFLE_CHECK_EQ(ucp_worker_set_am_recv_handler(worker_.get(), &handler), UCS_OK);
}

UcxNetwork::~UcxNetwork() {
  events_ = nullptr;
  for (Peer& peer : peers_) close(peer);
}

void UcxNetwork::open(std::vector<std::string> addresses, Events& events) {
  events_ = &events;
  peers_.resize(addresses.size());
  for (std::size_t r = 0; r < addresses.size(); ++r) {
    peers_[r].network = this;
    peers_[r].rank = static_cast<Rank>(r);
    peers_[r].address = std::move(addresses[r]);
  }
}

bool UcxNetwork::has_room(Rank to) const {
  return peers_[static_cast<std::size_t>(to)].in_flight < window;
}

// ---------------------------------------------------------------------------- sending

bool UcxNetwork::connect(Peer& peer) {
  if (peer.lost || peer.endpoint != nullptr) return !peer.lost;
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                          UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  parameters.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler = {.cb = on_error, .arg = &peer};
  if (ucp_ep_create(worker_.get(), &parameters, &peer.endpoint) != UCS_OK) {
    peer.endpoint = nullptr;
    lose(peer);
  }
  return !peer.lost;
}

void UcxNetwork::send(Rank to, const Chunk& chunk, std::span<const std::byte> data,
                      std::uint64_t request, std::shared_ptr<const void> keep) {
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  post(peer, Kind::data, chunk, data, request, std::move(keep));
  answer();
}

void UcxNetwork::post(Peer& peer, Kind kind, const Chunk& chunk, std::span<const std::byte> data,
                      std::uint64_t request, std::shared_ptr<const void> keep) {
  if (!connect(peer)) {
    if (events_ != nullptr) events_->sent(request);
    return;
  }
  if (free_.empty()) {
    flights_.push_back(std::make_unique<Flight>());
    free_.push_back(flights_.back().get());
  }
  Flight& flight = *free_.back();
  free_.pop_back();
  flight = {.peer = &peer,
            .header = {.session = options_.session,
                       .from = static_cast<std::uint32_t>(options_.self),
                       .kind = kind,
                       .sequence = peer.next_out++,
                       .chunk = chunk},
            .request = request,
            .keep = std::move(keep)};
  ++peer.in_flight;
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_AM_SEND_FLAG_EAGER;
  how.cb.send = on_sent;
  how.user_data = &flight;
  const ucs_status_ptr_t started =
      ucp_am_send_nbx(peer.endpoint, message_id, &flight.header, sizeof flight.header, data.data(),
                      data.size(), &how);
  if (UCS_PTR_IS_PTR(started)) return;
  if (UCS_PTR_IS_ERR(started)) lose(peer);  // first: what was not sent must not look sent
  landed(flight);
}

void UcxNetwork::on_sent(void* request, ucs_status_t status, void* flight) {
  auto& landed = *static_cast<Flight*>(flight);
  Peer& peer = *landed.peer;
  ucp_request_free(request);
  if (status != UCS_OK) peer.network->lose(peer);
  peer.network->landed(landed);
}

void UcxNetwork::landed(Flight& flight) {
  --flight.peer->in_flight;
  flight.keep.reset();
  free_.push_back(&flight);
  if (events_ != nullptr) events_->sent(flight.request);
}

// ---------------------------------------------------------------------------- receiving

ucs_status_t UcxNetwork::on_message(void* self, const void* header, std::size_t header_bytes,
                                    void* data, std::size_t bytes, const ucp_am_recv_param_t* how) {
  auto& network = *static_cast<UcxNetwork*>(self);
  Header ours;
  const bool eager = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  if (!eager || header_bytes != sizeof ours || network.events_ == nullptr) return UCS_OK;
  std::memcpy(&ours, header, sizeof ours);
  if (ours.session == network.options_.session && ours.from < network.peers_.size() &&
      bytes <= ucx_chunk_bytes)
    network.take(ours, {static_cast<const std::byte*>(data), bytes});
  return UCS_OK;
}

void UcxNetwork::take(const Header& header, std::span<const std::byte> data) {
  Peer& peer = peers_[header.from];
  if (peer.lost || peer.address.empty() || header.sequence < peer.next_in) return;
  if (!std::exchange(peer.has_sent, true)) to_answer_.push_back(peer.rank);
  if (header.sequence != peer.next_in) {
    peer.early[header.sequence] = {header, {data.begin(), data.end()}};
    return;
  }
  deliver(peer, header, data);
  while (!peer.lost && !peer.early.empty() && peer.early.begin()->first == peer.next_in) {
    const auto next = peer.early.extract(peer.early.begin());
    deliver(peer, next.mapped().header, next.mapped().data);
  }
}

void UcxNetwork::deliver(Peer& peer, const Header& header, std::span<const std::byte> data) {
  ++peer.next_in;
  switch (header.kind) {
    case Kind::data:
      if (!events_->begin(peer.rank, header.chunk, data.size())) return lose(peer);
      if (std::byte* place = events_->place(peer.rank, header.chunk, 0);
          place != nullptr && !data.empty())
        std::memcpy(place, data.data(), data.size());
      events_->arrived(peer.rank, header.chunk, data.size());
      return;
    case Kind::goodbye:
      peer.left = true;
      to_answer_.push_back(peer.rank);
      // Of a goodbye the place in the message says who is to blame, counted from one.
      events_->left(peer.rank, header.chunk.offset > peers_.size()
                                   ? -1
                                   : static_cast<Rank>(header.chunk.offset) - 1);
      return;
    case Kind::farewell:
      peer.answered = true;
      return;
  }
  lose(peer);
}

bool UcxNetwork::progress() {
  const bool moved = ucp_worker_progress(worker_.get()) != 0;
  answer();
  return moved;
}

// What may not be done inside a callback of UCX.
void UcxNetwork::answer() {
  while (!to_answer_.empty()) {
    Peer& peer = peers_[static_cast<std::size_t>(to_answer_.back())];
    to_answer_.pop_back();
    if (std::exchange(peer.broken, false)) {
      close(peer);
    } else if (connect(peer) && peer.left) {  // also where it has only sent: errors come by it
      post(peer, Kind::farewell, {}, {}, 0, nullptr);
    }
  }
}

// ---------------------------------------------------------------------------- ends

void UcxNetwork::on_error(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t /*status*/) {
  auto& lost = *static_cast<Peer*>(peer);
  lost.network->lose(lost);
}

void UcxNetwork::lose(Peer& peer) {
  if (std::exchange(peer.lost, true)) return;
  peer.broken = true;
  peer.early.clear();
  to_answer_.push_back(peer.rank);
  if (events_ != nullptr) events_->lost(peer.rank);
}

void UcxNetwork::close(Peer& peer) {
  peer.lost = true;
  if (peer.endpoint == nullptr) return;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t closing = ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &how);
  const Deadline deadline = Clock::now() + longest_close;
  const auto open = [&] {
    return peer.in_flight > 0 ||
           (UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS);
  };
  while (open() && Clock::now() < deadline)
    if (ucp_worker_progress(worker_.get()) == 0) sched_yield();
  RIFFLE_CHECK_EQ(peer.in_flight, 0);
  if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
}

void UcxNetwork::abandon(Rank rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  lose(peer);
  answer();
}

void UcxNetwork::leave(Rank culprit, Deadline deadline, const std::function<bool(Rank)>& failed) {
  const Chunk blame{.tag = {}, .bytes = 0, .offset = static_cast<std::uint64_t>(culprit + 1)};
  for (Peer& peer : peers_)
    if (peer.endpoint != nullptr && !peer.lost) post(peer, Kind::goodbye, blame, {}, 0, nullptr);
  const auto waiting = [&](const Peer& peer) {
    return peer.endpoint != nullptr && !peer.lost && !peer.left && !peer.answered &&
           !failed(peer.rank);
  };
  while (Clock::now() < deadline && std::ranges::any_of(peers_, waiting))
    if (!progress()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  // Those who have left before us may still wait for our farewell.
  progress();
}

}  // namespace riffle::engine

namespace riffle {

bool ucx_is_available() {
  return true;
}

}  // namespace riffle
