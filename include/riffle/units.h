// Units are types: a duration cannot be passed where a size is wanted, and text without its unit is
// an error that says which units fit.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace riffle {

// Simulated and modelled time. Real clocks use std::chrono's own types.
using Seconds = std::chrono::duration<double>;

constexpr Seconds milliseconds(double n) {
  return Seconds(n * 1e-3);
}
constexpr Seconds microseconds(double n) {
  return Seconds(n * 1e-6);
}

struct Bytes {
  std::int64_t count = 0;

  auto operator<=>(const Bytes&) const = default;
  Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
};
constexpr Bytes operator+(Bytes a, Bytes b) {
  return {a.count + b.count};
}
constexpr Bytes operator-(Bytes a, Bytes b) {
  return {a.count - b.count};
}
constexpr Bytes operator*(Bytes a, std::int64_t n) {
  return {a.count * n};
}
constexpr Bytes kibibytes(std::int64_t n) {
  return {n << 10};
}
constexpr Bytes mebibytes(std::int64_t n) {
  return {n << 20};
}

// A rate, in bytes (never bits) per second.
struct Bandwidth {
  double bytes_per_second = 0;
  auto operator<=>(const Bandwidth&) const = default;
};
constexpr Seconds operator/(Bytes size, Bandwidth rate) {
  return Seconds(static_cast<double>(size.count) / rate.bytes_per_second);
}

// What one byte costs: the beta, gamma and b of the cost formulas.
struct SecondsPerByte {
  double value = 0;
  auto operator<=>(const SecondsPerByte&) const = default;
};
constexpr Seconds operator*(SecondsPerByte cost, Bytes size) {
  return Seconds(cost.value * static_cast<double>(size.count));
}

// "50us" -> Seconds. `what` names the field in the error of a bad text. ns us ms s.
Seconds parse_seconds(std::string_view text, std::string_view what);
// bps Kbps Mbps Gbps are bits; B/s KB/s MB/s GB/s bytes; powers of ten.
Bandwidth parse_bandwidth(std::string_view text, std::string_view what);
// B KB MB GB (powers of ten) KiB MiB GiB (powers of two).
Bytes parse_bytes(std::string_view text, std::string_view what);
// Seconds for one byte, spelled as a time: "0.964ns".
SecondsPerByte parse_seconds_per_byte(std::string_view text, std::string_view what);
// "5%" -> 0.05.
double parse_percent(std::string_view text, std::string_view what);

// Three or four significant digits and the unit a person would choose: "8.20 ms", "97.5 MiB".
std::string print(Seconds time);
std::string print(Bytes size);
std::string print(Bandwidth rate);

// Shortest text that parses back to the same value: "50us", "10Gbps", "25MiB".
std::string spell(Seconds time);
std::string spell(Bytes size);
std::string spell(Bandwidth rate);
std::string spell(SecondsPerByte cost);
std::string spell_percent(double fraction);

}  // namespace riffle
