// A UCX context with one worker, set up for our use: eager only, no shared memory, one interface.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

namespace riffle::engine {

// A chunk and its header fit one message of the TCP transport.
constexpr std::size_t ucx_chunk_bytes = std::size_t{128} << 10;

class UcxWorker {
 public:
  // UsageError when UCX cannot use the interface.
  explicit UcxWorker(const std::string& interface);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  [[nodiscard]] ucp_worker_h get() const { return worker_; }
  [[nodiscard]] std::string address() const;
  [[nodiscard]] int event_fd() const { return event_fd_; }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
};

}  // namespace riffle::engine
