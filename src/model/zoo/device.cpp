#include <algorithm>

#include "base/text.h"
#include "riffle/error.h"
#include "riffle/zoo.h"

namespace riffle {
namespace {

// The share of the peak that fp32 kernels reach. One number for all models and devices, fitted to
// the V100 measurements that docs/traces.md lists beside our times.
constexpr double kEfficiency = 0.63;

// One kernel started from a framework and waiting for nothing.
constexpr Seconds kLaunch = microseconds(5);

constexpr Bandwidth gigabytes(double n) {
  return {n * 1e9};
}

}  // namespace

// Peaks are the vendor's: NVIDIA Tesla V100 data sheet (PCIe: 14 TFLOP/s single precision,
// 900 GB/s); A100 data sheet (FP32 19.5 TFLOP/s without tensor cores, 40 GB: 1555 GB/s); Tesla K80
// board specification (8.74 TFLOP/s at boost and 480 GB/s for two GK210, so half of it for the one
// that a worker uses); GeForce RTX 2080 Ti (4352 cores at 1545 MHz boost: 13.4 TFLOP/s, 616 GB/s).
std::vector<Device> builtin_devices() {
  return {{"a100", "A100 fp32", 19.5e12, gigabytes(1555), kEfficiency, kLaunch},
          {"k80", "K80 fp32 (one GK210)", 4.37e12, gigabytes(240), kEfficiency, kLaunch},
          {"rtx2080ti", "RTX 2080 Ti fp32", 13.4e12, gigabytes(616), kEfficiency, kLaunch},
          {"v100", "V100 fp32", 14e12, gigabytes(900), kEfficiency, kLaunch}};
}

Device builtin_device(std::string_view name) {
  const std::vector<Device> devices = builtin_devices();
  const auto found = std::ranges::find(devices, name, &Device::name);
  if (found != devices.end()) return *found;
  std::vector<std::string> known;
  known.reserve(devices.size());
  for (const Device& device : devices) known.push_back(device.name);
  throw UsageError(unknown_name("device", name, known));
}

}  // namespace riffle
