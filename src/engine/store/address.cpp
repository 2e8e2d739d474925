#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "riffle/error.h"
#include "riffle/store.h"

namespace riffle {

StoreAddress parse_store_address(std::string_view text, std::string_view what) {
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    usage_error("{} {}: an IPv6 address is written in brackets, as in [::1]:29500", what,
                quote(text));
  if (host.empty())
    usage_error("{} {} is not HOST:PORT, as in node7:29500 or [::1]:29500", what, quote(text));
  const std::int64_t port = parse_integer(text.substr(colon + 1), fmt::format("port of {}", what));
  if (port < 1 || port > 65535)
    usage_error("{} {}: a port is a number from 1 to 65535", what, quote(text));
  return {std::string(host), static_cast<int>(port)};
}

std::string print(const StoreAddress& address) {
  if (address.host.find(':') == std::string::npos)
    return fmt::format("{}:{}", address.host, address.port);
  return fmt::format("[{}]:{}", address.host, address.port);
}

std::string make_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error(fmt::format("no random bytes for a token: {}", std::strerror(errno)));
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace riffle
