// How members find out that their calls do not fit or that one of them has failed.
//
// Besides the messages of the pattern there are two kinds. A header, before the first message to a
// member, says which call ours is. When we fail, every member that still waits for a message of
// ours gets a notice that names the culprit, and in place of that message one of a single byte,
// which fits no receive and so ends its wait.
#include "collective/execute_errors.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "collective/notice.h"
#include "riffle/error.h"

namespace riffle::collective {
namespace {

constexpr std::array<std::byte, 1> odd_byte{};
constexpr Seconds short_patience{0.1};

}  // namespace

// --- headers -------------------------------------------------------------------------------------

void PatternOperation::send_handshake(int member) {
  if (std::exchange(handshake_sent_[member], 1) != 0) return;
  const Tag tag{tags_.channel, tags_.sequence[member], header_round};
  transfers_.add(engine_->send(rank_of(member), tag, std::as_bytes(std::span(&header_, 1))),
                 {Transfers::Kind::header_send, member, 0, tag});
}

void PatternOperation::expect_handshake(int member) {
  if (expected_[member] != Handshake::none) return;
  expected_[member] = Handshake::awaited;
  const Tag tag{tags_.channel, tags_.sequence[member], header_round};
  CallHeader& theirs = handshakes_.emplace_back(member, CallHeader{}).second;
  transfers_.add(
      engine_->receive(rank_of(member), tag, std::as_writable_bytes(std::span(&theirs, 1))),
      {Transfers::Kind::header_receive, member, static_cast<int>(handshakes_.size()) - 1, tag});
}

void PatternOperation::check_handshake(const Transfers::Note& note) {
  compare(note.member, handshakes_[note.segment].second);
  release(note.member);
}

void PatternOperation::compare(int member, CallHeader theirs) {
  const bool gave_up = std::exchange(theirs.gave_up, std::uint8_t{0}) != 0;
  if (theirs != header_)
    throw_named(CommFailure::mismatch, rank_of(member),
                fmt::format("it called {}; rank {} called {}", describe(theirs), engine_->rank(),
                            describe(header_)));
  expected_[member] = Handshake::fits;
  if (gave_up) throw_what_it_says(member);
}

// Its message has come before its header: get that, so that the calls can be compared.
void PatternOperation::compare_late_handshake(int member) {
  const auto slot = std::ranges::find(handshakes_, member, &std::pair<int, CallHeader>::first);
  if (slot == handshakes_.end()) return;
  CallHeader& theirs = slot->second;
  if (theirs.members == 0) {  // not even unnoticed
    Request request =
        engine_->receive(rank_of(member), {tags_.channel, tags_.sequence[member], header_round},
                         std::as_writable_bytes(std::span(&theirs, 1)));
    engine_->wait(request, {.deadline = after(notice_patience), .context = call_.context()});
  }
  compare(member, theirs);
}

// --- errors --------------------------------------------------------------------------------------

void PatternOperation::throw_named(CommFailure failure, Rank culprit, std::string detail) {
  detail_ = std::move(detail);
  throw CommError(failure, culprit, culprit >= 0 ? engine_->host(culprit) : "", call_.context(),
                  detail_);
}

// The engine knows ranks and sizes; we know the call. Once headers fit, a message of another size
// can only be a member's way of saying that it has failed.
void PatternOperation::explain(const CommError& error) {
  const int member = call_.group.index_of(error.rank());
  if (error.failure() == CommFailure::mismatch && member >= 0) {
    transfers_.cancel();
    if (expected_[member] == Handshake::awaited) compare_late_handshake(member);
    throw_what_it_says(member);
  }
  if (error.failure() == CommFailure::timed_out)
    throw_named(CommFailure::timed_out, rank_of(most_awaited()), "");
  // Engine::test does not know our call.
  if (error.group().empty()) throw_named(error.failure(), error.rank(), "");
  throw CommError(error);
}

void PatternOperation::throw_what_it_says(int member) {
  Notice notice;
  Request request =
      engine_->receive(rank_of(member), {tags_.channel, tags_.sequence[member], notice_round},
                       std::as_writable_bytes(std::span(&notice, 1)));
  engine_->wait(request, {.deadline = after(notice_patience), .context = call_.context()});
  std::string detail{notice.text()};
  if (notice.culprit != rank_of(member) && detail.empty())
    detail = fmt::format("as rank {} says", rank_of(member));
  throw_named(static_cast<CommFailure>(notice.failure), notice.culprit, std::move(detail));
}

void PatternOperation::throw_if_late() {
  if (Clock::now() < deadline_) return;
  throw_named(CommFailure::timed_out, rank_of(most_awaited()), "");
}

// The member whose message is due first; others may themselves be waiting for it.
int PatternOperation::most_awaited() const {
  const auto open = transfers_.open();
  const auto due = [](const Transfers::Note& note) {
    return std::tuple(note.kind != Transfers::Kind::receive, note.tag.round);
  };
  return std::ranges::min_element(open, {}, due)->member;
}

void PatternOperation::fail(const std::exception_ptr& error) {
  error_ = error;
  try {
    std::rethrow_exception(error);
  } catch (const CommError& comm) {
    give_up(comm.failure(), comm.rank(), detail_);
  } catch (const std::exception& other) {
    give_up(CommFailure::aborted, engine_->rank(), other.what());
  }
}

// --- telling others ------------------------------------------------------------------------------

// Messages that members will wait for in vain: those under way, of which nobody knows whether they
// will arrive, and for each member the first that we have not begun.
std::vector<std::pair<int, Tag>> PatternOperation::owed() const {
  std::vector<std::pair<int, Tag>> all;
  for (const Transfers::Note& note : transfers_.open())
    if (note.kind == Transfers::Kind::send) all.emplace_back(note.member, note.tag);
  for (const Held& held : held_) all.emplace_back(held.note.member, held.note.tag);
  std::vector<char> known(call_.group.size());
  const auto owe = [&](int member, const Tag& tag) {
    if (std::exchange(known[member], 1) == 0) all.emplace_back(member, tag);
  };
  const auto owe_rounds = [&](int segment, int from_round) {
    std::vector<pattern::Message> messages;
    for (int round = from_round; round < plan_.pattern().rounds(); ++round) {
      messages.clear();
      plan_.pattern().sends(me_, round, messages);
      for (const pattern::Message& message : messages)
        owe(message.to, tag_of(message.to, segment, round));
    }
  };
  for (const Segment& segment : segments_) owe_rounds(segment.index, segment.round + 1);
  if (next_ < plan_.segments()) owe_rounds(next_, 0);
  return all;
}

void PatternOperation::give_up(CommFailure failure, Rank culprit,
                               std::string_view detail) noexcept {
  try {
    const auto waiting = owed();
    transfers_.cancel();
    const Notice notice(failure, culprit, detail);
    header_.gave_up = 1;
    std::vector<char> told(call_.group.size());
    std::vector<Request> requests;
    for (const auto& [member, tag] : waiting) {
      if (engine_->failure(rank_of(member))) continue;
      if (std::exchange(told[member], 1) == 0)
        tell(member, std::as_bytes(std::span(&notice, 1)), requests);
      requests.push_back(engine_->send(rank_of(member), tag, odd_byte));
    }
    // Members of another call may wait for us though our call has nothing for them.
    if (failure == CommFailure::mismatch)
      for (int member = 0; member < call_.group.size(); ++member)
        if (member != me_ && handshake_sent_[member] == 0 && told[member] == 0)
          tell(member, std::as_bytes(std::span(&notice, 1)), requests);
    // Members of one host see a failed rank for themselves; others may hear of it from us alone.
    const bool seen = failure == CommFailure::died || failure == CommFailure::frozen ||
                      failure == CommFailure::absent;
    finish(requests, after(seen ? short_patience : notice_patience));
  } catch (const std::exception&) {
    // Out of memory while failing: the others have their deadlines.
  }
}

// Lets the messages go until the deadline; what has not begun by then is not sent.
void PatternOperation::finish(std::vector<Request>& requests, Deadline until) {
  for (Request& request : requests) {
    try {
      if (!engine_->test(request))
        engine_->wait(request, {.deadline = until, .context = call_.context()});
    } catch (const CommError&) {  // it has failed too, or will learn from its own deadline
    }
  }
}

void PatternOperation::tell(int member, std::span<const std::byte> notice,
                            std::vector<Request>& requests) {
  const std::uint32_t sequence = tags_.sequence[member];
  requests.push_back(
      engine_->send(rank_of(member), {tags_.channel, sequence, notice_round}, notice));
  // Again where it was on its way and may have been cancelled; a second one is never looked at.
  requests.push_back(engine_->send(rank_of(member), {tags_.channel, sequence, header_round},
                                   std::as_bytes(std::span(&header_, 1))));
}

}  // namespace riffle::collective
