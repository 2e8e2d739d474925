// Any bytes at the store's port: a session answers or refuses, keeps within its limits, and what it
// reads it would write alike. The first byte says how the rest is cut into pieces.
#include "engine/store/session.h"
#include "property.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of a few functions

namespace {

constexpr Bytes capacity = kibibytes(4);

// Everything the session has to say; each a well-formed reply.
std::optional<store::Reply> take_replies(store::Session& session) {
  store::Framer framer(store::max_message);
  framer.feed(session.output());
  session.sent(session.output().size());
  std::optional<store::Reply> last;
  while (const auto body = framer.next()) last = store::decode_reply(*body);
  fuzz::require(!framer.partial(), "replies are whole");
  return last;
}

void converse(bool greeted, std::string_view bytes, std::size_t piece) {
  store::Table table(capacity);
  const std::string token = "token";
  store::Session session(table, token);
  if (greeted) session.receive(store::encode_hello(token));
  std::optional<std::string> changed;
  try {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      session.receive(bytes.substr(at, piece));
      while (session.advance(changed)) {
        const bool answered = take_replies(session).has_value();
        fuzz::require(answered != session.waiting().has_value(), "an answer, or a wait");
        if (session.waiting() && session.waiting()->key.size() % 2 == 0) session.give_up();
        session.key_changed();
        take_replies(session);
      }
    }
  } catch (const store::Refusal& refusal) {
    const auto last = take_replies(session);
    fuzz::require(last && last->status == store::Status::denied, "a refusal is said");
    fuzz::require(std::string_view(refusal.what()).size() < 200, "and short", refusal.what());
  }
  fuzz::require(table.bytes() <= static_cast<std::size_t>(capacity.count), "the table's capacity");
  fuzz::require(greeted || table.bytes() == 0 || bytes.find(token) != std::string_view::npos,
                "nothing without the token");
}

template <typename Decode>
void read_back(const Decode& decode, std::string_view body) {
  try {
    const auto message = decode(body);
    const std::string again = store::encode(message);
    fuzz::require(decode(std::string_view(again).substr(4)) == message, "reads back");
  } catch (const store::Refusal&) {
    return;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (text.empty()) return 0;
  const std::size_t piece = 1 + static_cast<unsigned char>(text.front()) % 32;
  converse(true, text.substr(1), piece);
  converse(false, text.substr(1), piece);
  read_back(store::decode_command, text);
  read_back(store::decode_reply, text);
  if (const auto address = fuzz::parsed([&] { return parse_store_address(text, "a"); }))
    fuzz::require(parse_store_address(print(*address), "a") == *address, "an address");
  return 0;
}
