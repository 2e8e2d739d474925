#include "engine/ucx/worker.h"

#include <ucs/debug/log_def.h>

#include <cstdlib>
#include <mutex>
#include <utility>

#include "riffle/error.h"

namespace riffle::engine {

namespace {

// What UCX would print as errors (a peer that died, a stranger on its port) is told by CommErrors,
// once, in our words. UCX_LOG_LEVEL brings its own words back.
ucs_log_func_rc_t only_fatal(const char*, unsigned, const char*, ucs_log_level_t level,
                             const ucs_log_component_config_t*, const char*, va_list) {
  return level == UCS_LOG_LEVEL_FATAL ? UCS_LOG_FUNC_RC_CONTINUE : UCS_LOG_FUNC_RC_STOP;
}

void quieten() {
  static std::once_flag once;  // UCX has one list of handlers in a process
  std::call_once(once, [] {
    if (std::getenv("UCX_LOG_LEVEL") == nullptr) ucs_log_push_handler(only_fatal);
  });
}

void check(ucs_status_t status, const char* what, const std::string& interface) {
  if (status != UCS_OK)
    usage_error("ucx: {} on interface {} failed: {}", what, interface, ucs_status_string(status));
}

// Rendezvous costs five one-way latencies, so everything is eager. A chunk fits into a segment:
// what does not is sent in fragments and put together in one more copy. Ranks of one host that may
// share memory do so without UCX; those that may not must not find out. A blocking connect would
// hold up the whole rank while a host is gone. Liveness is ours, so UCX need not ask. Settings of a
// transport count without its name in front in some versions of UCX (1.13), with it in others.
ucp_config_t* configure(const std::string& interface) {
  ucp_config_t* config = nullptr;
  check(ucp_config_read(nullptr, nullptr, &config), "reading the configuration", interface);
  const std::string segment = std::to_string(ucx_chunk_bytes + 4096);
  const std::pair<const char*, std::string> settings[] = {
      {"TLS", "^posix,sysv,cma,knem,xpmem,self"},
      {"NET_DEVICES", interface},
      {"RNDV_THRESH", "inf"},
      {"KEEPALIVE_INTERVAL", "inf"},
      {"TCP_TX_SEG_SIZE", segment},
      {"TX_SEG_SIZE", segment},
      {"TCP_RX_SEG_SIZE", segment},
      {"RX_SEG_SIZE", segment},
      {"TCP_CONN_NB", "y"},
      {"CONN_NB", "y"},
  };
  for (const auto& [name, value] : settings)
    check(ucp_config_modify(config, name, value.c_str()), name, interface);
  return config;
}

}  // namespace

UcxWorker::UcxWorker(const std::string& interface) {
  quieten();
  ucp_config_t* config = configure(interface);
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  const ucs_status_t made = ucp_init(&parameters, config, &context_);
  ucp_config_release(config);
  check(made, "starting", interface);

  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  const ucs_status_t opened = ucp_worker_create(context_, &worker, &worker_);
  if (opened != UCS_OK) ucp_cleanup(context_);
  check(opened, "opening", interface);
  const ucs_status_t watched = ucp_worker_get_efd(worker_, &event_fd_);
  if (watched != UCS_OK) {
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  check(watched, "watching", interface);
}

UcxWorker::~UcxWorker() {
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

std::string UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker_, &address, &length), "asking for the address", "");
  std::string bytes(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

}  // namespace riffle::engine
