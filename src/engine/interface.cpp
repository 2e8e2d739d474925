#include "engine/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "riffle/error.h"

namespace riffle::engine {

namespace {

std::string numeric(const sockaddr* address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(),
            text.size());
  return text.data();
}

std::vector<Interface> all_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next)
    if (each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET)
      all.push_back({each->ifa_name, numeric(each->ifa_addr)});
  return all;
}

std::string print(const std::vector<Interface>& all) {
  std::string text;
  for (const Interface& each : all)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", each.name, each.address);
  return text.empty() ? "none" : text;
}

// The address from which this host would send to the store. No packet is sent.
std::string local_address_towards(const StoreAddress& store) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(store.host.c_str(), std::to_string(store.port).c_str(), &hints, &found) != 0)
    return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const Descriptor probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in local{};
  socklen_t length = sizeof local;
  if (connect(probe.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0)
    return "";
  return numeric(reinterpret_cast<const sockaddr*>(&local));
}

}  // namespace

bool has_rdma(const Interface& interface) {
  std::error_code none;
  return std::filesystem::exists("/sys/class/net/" + interface.name + "/device/infiniband", none);
}

Interface find_interface(const std::string& wanted, const StoreAddress& store) {
  const auto all = all_interfaces();
  const std::string by = wanted.empty() ? local_address_towards(store) : wanted;
  const auto found = std::ranges::find_if(
      all, [&](const Interface& each) { return each.name == by || each.address == by; });
  if (found != all.end()) return *found;
  if (wanted.empty())
    usage_error("no IPv4 interface of this host reaches the store {}; name one (there are {})",
                riffle::print(store), print(all));
  usage_error("there is no interface {} with an IPv4 address; there are {}", wanted, print(all));
}

}  // namespace riffle::engine
