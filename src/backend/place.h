// Torch's store as the place where the ranks of an engine meet.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "riffle/make_engine.h"

namespace riffle::backend {

class TorchStore final : public MeetingPlace {
 public:
  // `address` is a host that all ranks reach over the network that connects them.
  TorchStore(c10::intrusive_ptr<c10d::Store> store, StoreAddress address)
      : store_(std::move(store)), address_(std::move(address)) {}

  void set(const std::string& key, const std::string& value, Deadline deadline) override;
  std::string wait(const std::string& key, Deadline deadline) override;
  [[nodiscard]] StoreAddress address() const override { return address_; }

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  StoreAddress address_;
};

}  // namespace riffle::backend
