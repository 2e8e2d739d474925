#include "backend/backend.h"

#include <ATen/core/grad_mode.h>

namespace riffle::backend {

RiffleBackend::RiffleBackend(std::shared_ptr<distributed::World> world,
                             distributed::TeamOptions options)
    : Backend(static_cast<int>(std::ranges::find(options.ranks, world->engine().rank()) -
                               options.ranks.begin()),
              static_cast<int>(options.ranks.size())),
      world_(std::move(world)),
      name_(options.name),
      team_(std::make_shared<distributed::Team>(world_, std::move(options))) {
  init();
}

RiffleBackend::~RiffleBackend() = default;

RiffleBackend::Works RiffleBackend::start(Call call,
                                          std::function<void(distributed::TeamCall&)> body) {
  auto work = c10::make_intrusive<CallWork>(rank_, call.type, call.title, call.inputs,
                                            std::move(call.outputs));
  distributed::Team::Start start;
  start.name = call.name;
  start.timeout = call.timeout.count() < 0 ? Seconds{-1} : Seconds(call.timeout);
  start.here = !call.async;
  start.body = [body = std::move(body)](distributed::TeamCall& context) {
    const at::NoGradGuard no_grad;
    body(context);
  };
  start.done = [work](const std::exception_ptr& error) { work->ended(error); };
  try {
    work->set_sequence(team_->start(std::move(start)));
  } catch (...) {
    std::rethrow_exception(translated(std::current_exception()));
  }
  return work;
}

Rank RiffleBackend::root(std::int64_t member, const char* collective) const {
  TORCH_CHECK_VALUE(member >= 0 && member < size_, "riffle: ", collective, ": root ", member,
                    " is outside a group of ", size_);
  return team_->rank_of(static_cast<int>(member));
}

RiffleBackend::Works RiffleBackend::barrier(const c10d::BarrierOptions& options) {
  return start({.name = "barrier",
                .title = "riffle:barrier",
                .type = c10d::OpType::BARRIER,
                .timeout = options.timeout,
                .async = options.asyncOp},
               [](distributed::TeamCall& call) {
                 call.collectives().barrier(call.group(), call.options());
               });
}

namespace {

at::Tensor& only(std::vector<at::Tensor>& tensors, const char* what) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "riffle: ", what, " takes one tensor, not ",
                    tensors.size());
  check_tensor(tensors[0], what);
  return tensors[0];
}

distributed::Message::What message_of(const at::Tensor& contiguous, int tag) {
  distributed::Message::What what;
  what.tag = tag;
  what.data = {data_of(contiguous), bytes_of(contiguous)};
  what.dtype = static_cast<std::uint64_t>(contiguous.scalar_type());
  return what;
}

}  // namespace

RiffleBackend::Works RiffleBackend::send(Tensors& tensors, int to, int tag) {
  const at::Tensor data = only(tensors, "send").contiguous();
  TORCH_CHECK_VALUE(to >= 0 && to < size_ && to != rank_, "riffle: send to rank ", to,
                    " in a group of ", size_);
  auto work = c10::make_intrusive<MessageWork>(rank_, c10d::OpType::SEND, "riffle:send", tensors,
                                               Tensors{});
  // The work keeps the data until it is sent.
  auto done = [work, data](const std::exception_ptr& error) { work->ended(error); };
  work->set_message(team_, team_->send(to, message_of(data, tag), done, Seconds{-1}));
  return work;
}

RiffleBackend::Works RiffleBackend::receive(Tensors& tensors, int from, int tag,
                                            c10d::OpType type) {
  at::Tensor tensor = only(tensors, "recv");
  const at::Tensor data = tensor.is_contiguous() ? tensor : at::Tensor(tensor.contiguous());
  auto work =
      c10::make_intrusive<MessageWork>(rank_, type, "riffle:recv", tensors, Tensors{tensor});
  auto done = [work, data, tensor](const std::exception_ptr& error) {
    if (error == nullptr && !data.is_same(tensor)) {
      const at::NoGradGuard no_grad;
      tensor.copy_(data);
    }
    work->ended(error);
  };
  work->set_message(team_, team_->receive(from, message_of(data, tag), done, Seconds{-1}));
  return work;
}

RiffleBackend::Works RiffleBackend::recv(Tensors& tensors, int from, int tag) {
  TORCH_CHECK_VALUE(from >= 0 && from < size_ && from != rank_, "riffle: recv from rank ", from,
                    " in a group of ", size_);
  return receive(tensors, from, tag, c10d::OpType::RECV);
}

RiffleBackend::Works RiffleBackend::recvAnysource(Tensors& tensors, int tag) {
  return receive(tensors, -1, tag, c10d::OpType::RECVANYSOURCE);
}

}  // namespace riffle::backend
