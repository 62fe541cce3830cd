#include "training/language/executor.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace ringmaster::training {

std::string_view name_of(op x) {
  switch (x) {
    case op::load_weights: return "load_weights";
    case op::input: return "input";
    case op::forward: return "forward";
    case op::backward: return "backward";
    case op::backward_input: return "backward_input";
    case op::backward_weight: return "backward_weight";
    case op::keys: return "keys";
    case op::attend: return "attend";
    case op::attend_backward: return "attend_backward";
    case op::loss: return "loss";
    case op::add: return "add";
    case op::slice: return "slice";
    case op::update: return "update";
    case op::finish: return "finish";
    case op::offload: return "offload";
    case op::fetch: return "fetch";
    case op::all_to_all: return "all_to_all";
    case op::broadcast: return "broadcast";
    case op::all_reduce: return "all_reduce";
    case op::all_gather: return "all_gather";
    case op::reduce_scatter: return "reduce_scatter";
    case op::send: return "send";
    case op::receive: return "receive";
  }
  return "nothing";
}

caf::error refused(const pending& x, std::string_view why) {
  return invalid(fmt::format("rank {}, {}: {}", x.rank, name_of(x.what), why));
}

caf::error refused(const pending& x, const caf::error& why) {
  return with_context(fmt::format("rank {}, {}", x.rank, name_of(x.what)), why);
}

caf::error misused(const pending& x, std::string_view how) {
  return invalid(fmt::format("rank {} {} {} of the {}", x.rank, how, name_of(x.what), text_of(x.argument)));
}

bool begin(executor& on, pending& x) {
  return on.begin(x);
}

bool await(executor& on, pending& x) {
  return on.await(x);
}

bool has_failed(const executor& on) {
  return on.failed();
}

void refuse(executor& on, const pending& x, std::string_view why) {
  on.fail(x.rank, refused(x, why));
}

void misuse(executor& on, const pending& x, std::string_view how) {
  on.fail(x.rank, misused(x, how));
}

void throw_not_finished(const pending& x) {
  throw std::logic_error{render(misused(x, "takes, before it has ended or twice, the result of its"))};
}

} // namespace ringmaster::training
