#include "actors/hosts/supervisor.hpp"

#include "messages/errc.hpp"
#include "messages/type_ids.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <caf/exit_reason.hpp>
#include <caf/result.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>

namespace ringmaster {

namespace {

using supervisor_pointer = caf::stateful_actor<supervisor_state>*;
using phase = supervised_child::phase;

void go_on(supervisor_pointer self);

std::string reason_text(const caf::error& reason) {
  return reason ? render(reason) : "it ended normally";
}

bool wants_restart(restart_kind kind, const caf::error& reason) {
  if (kind == restart_kind::transient)
    return reason && reason != caf::exit_reason::user_shutdown;
  return kind == restart_kind::permanent;
}

void condemn(supervised_child& child) {
  if (child.now == phase::running)
    child.now = phase::condemned;
}

/// Ends everything; the first reason counts.
void end_with(supervisor_pointer self, caf::error reason) {
  auto& st = self->state;
  if (!st.ending)
    st.ending = std::move(reason);
  for (auto& child : st.children) {
    condemn(child);
    if (child.now == phase::waiting || child.now == phase::delayed)
      child.now = phase::ended;
  }
}

void give_up(supervisor_pointer self, const std::string& cause) {
  auto text = fmt::format("supervisor {} gave up: {}", self->state.options.name, cause);
  spdlog::error("{}", text);
  end_with(self, make_error(errc::gave_up, std::move(text)));
}

/// Errors: gave_up, if the start function throws or returns no handle.
caf::error try_start(supervisor_pointer self, supervised_child& child) {
  ensure(child.now == phase::waiting, "a child that is started waits for that");
  try {
    child.handle = child.spec.start(self);
  } catch (const std::exception& problem) {
    return make_error(errc::gave_up, problem.what());
  } catch (...) {
    return make_error(errc::gave_up, "its start function threw something unknown");
  }
  if (!child.handle)
    return make_error(errc::gave_up, "its start function returned an invalid handle");
  child.now = phase::running;
  self->monitor(child.handle);
  return {};
}

void start_waiting(supervisor_pointer self) {
  for (auto& child : self->state.children) {
    if (child.now != phase::waiting)
      continue;
    if (const auto problem = try_start(self, child)) {
      child.handle = nullptr;
      give_up(self, fmt::format("child {} cannot be started: {}", child.spec.name, render(problem)));
      go_on(self);
      return;
    }
  }
}

void stop(supervisor_pointer self, size_t index) {
  auto& st = self->state;
  ensure(!st.stopping, "one child is stopped at a time");
  ensure(st.children[index].now == phase::condemned && st.children[index].handle, "a child that is stopped still runs");
  st.stopping = index;
  st.killing = false;
  self->send_exit(st.children[index].handle, caf::exit_reason::user_shutdown);
  self->delayed_send(self, st.options.stop_timeout, atom::expire_v, ++st.stop_number);
}

/// The next step: stops the last of the condemned children, else quits, else starts those that wait.
void go_on(supervisor_pointer self) {
  auto& st = self->state;
  if (st.stopping)
    return;
  for (auto index = st.children.size(); index-- > 0;)
    if (st.children[index].now == phase::condemned)
      return stop(self, index);
  if (st.ending) {
    ensure(std::ranges::all_of(st.children, [](auto& child) { return child.now == phase::ended; }),
           "a supervisor quits when all of its children have ended");
    self->quit(*st.ending);
  } else {
    start_waiting(self);
  }
}

/// A condemned child has ended: it was stopped, or it ended by itself before its turn.
void on_stopped(supervisor_pointer self, size_t index, const caf::error& reason) {
  auto& st = self->state;
  auto& child = st.children[index];
  ensure(child.now == phase::condemned, "a child that was stopped was condemned");
  auto may_start = child.spec.restart != restart_kind::temporary;
  auto again = !st.ending && may_start && (st.stopping == index || wants_restart(child.spec.restart, reason));
  child.handle = nullptr;
  child.now = again ? phase::waiting : phase::ended;
  if (st.stopping == index)
    st.stopping.reset();
}

/// The system lacks what the child needs: it is started later.
void start_later(supervisor_pointer self, size_t index, const caf::error& reason) {
  auto& st = self->state;
  auto& child = st.children[index];
  const auto delay = restart_delay(++child.starved, st.options.period);
  const auto again = duration_text(delay);
  if (child.starved == 1)
    spdlog::warn("supervisor {}: child {} cannot be started: {}; the others go on. It is tried again in {}, then after "
                 "twice as long each time, at most {}",
                 st.options.name, child.spec.name, reason_text(reason), again, duration_text(st.options.period));
  else
    spdlog::debug("supervisor {}: child {} is tried again in {}: {}", st.options.name, child.spec.name, again,
                  reason_text(reason));
  child.now = phase::delayed;
  self->delayed_send(self, delay, atom::resume_v, uint64_t{index});
}

void on_due(supervisor_pointer self, uint64_t index) {
  ensure(index < self->state.children.size(), "a child that is due is known");
  auto& child = self->state.children[index];
  if (child.now != phase::delayed)
    return;
  child.now = phase::waiting;
  go_on(self);
}

void on_failed(supervisor_pointer self, size_t index, const caf::error& reason) {
  auto& st = self->state;
  auto& child = st.children[index];
  ensure(child.now == phase::running, "a child that fails was running");
  child.handle = nullptr;
  child.now = phase::ended;
  if (!wants_restart(child.spec.restart, reason)) {
    spdlog::info("supervisor {}: child {} has ended: {}", st.options.name, child.spec.name, reason_text(reason));
    return;
  }
  const auto verdict = st.options.judge ? st.options.judge(reason) : restart_verdict::counts;
  if (verdict == restart_verdict::starved && child.has_run)
    return start_later(self, index, reason);
  if (verdict != restart_verdict::starved) {
    child.has_run = true;
    child.starved = 0;
  }
  ensure(st.intensity.has_value(), "a supervisor counts restarts");
  if (verdict != restart_verdict::pardoned && !st.intensity->allow(self->clock().now())) {
    give_up(self,
            fmt::format("{}; the last was child {}: {}", st.intensity->reason(), child.spec.name, reason_text(reason)));
    return;
  }
  spdlog::info("supervisor {}: starts child {} again: {}", st.options.name, child.spec.name, reason_text(reason));
  child.now = phase::waiting;
  auto all = st.options.strategy == restart_strategy::one_for_all;
  auto rest = st.options.strategy == restart_strategy::rest_for_one;
  for (size_t other = 0; other < st.children.size(); ++other)
    if (all || (rest && other > index))
      condemn(st.children[other]);
}

void on_down(supervisor_pointer self, const caf::down_msg& down) {
  auto& children = self->state.children;
  auto found = std::find_if(children.begin(), children.end(),
                            [&](const supervised_child& child) { return child.handle && child.handle == down.source; });
  if (found == children.end())
    return;
  auto index = static_cast<size_t>(found - children.begin());
  if (found->now == phase::condemned)
    on_stopped(self, index, down.reason);
  else
    on_failed(self, index, down.reason);
  go_on(self);
}

/// A child was asked to stop and did not in time.
void on_stop_timeout(supervisor_pointer self, uint64_t number) {
  auto& st = self->state;
  if (!st.stopping || number != st.stop_number)
    return;
  auto& child = st.children[*st.stopping];
  ensure(child.handle && child.now == phase::condemned, "a child that was asked to stop still runs");
  if (!st.killing) {
    spdlog::warn("supervisor {}: child {} does not end, it is killed", st.options.name, child.spec.name);
    st.killing = true;
    self->send_exit(child.handle, caf::exit_reason::kill);
    self->delayed_send(self, st.options.stop_timeout, atom::expire_v, ++st.stop_number);
    return;
  }
  spdlog::error("supervisor {}: child {} cannot even be killed, it is abandoned", st.options.name, child.spec.name);
  self->demonitor(child.handle);
  on_stopped(self, *st.stopping, caf::exit_reason::kill);
  go_on(self);
}

caf::result<caf::actor> handle_of(const supervisor_state& st, const std::string& name) {
  for (const auto& child : st.children)
    if (child.spec.name == name)
      return child.handle;
  return invalid(fmt::format("supervisor {} has no child named \"{}\"", st.options.name, name));
}

std::vector<caf::actor> handles_of(const supervisor_state& st) {
  std::vector<caf::actor> handles;
  for (const auto& child : st.children)
    handles.push_back(child.handle);
  return handles;
}

} // namespace

supervisor_state::~supervisor_state() {
  for (auto child = children.rbegin(); child != children.rend(); ++child)
    if (child->handle)
      caf::anon_send_exit(child->handle, caf::exit_reason::user_shutdown);
}

caf::behavior supervisor(supervisor_pointer self, supervisor_options options) {
  auto& st = self->state;
  st.options = std::move(options);
  st.intensity.emplace(restart_intensity::options{st.options.restarts_max, st.options.period});
  for (auto& spec : st.options.children)
    st.children.push_back({std::move(spec), {}, phase::waiting});
  st.options.children.clear();
  self->set_down_handler([=](const caf::down_msg& down) { on_down(self, down); });
  self->set_exit_handler([=](const caf::exit_msg& exit) {
    end_with(self, exit.reason);
    go_on(self);
  });
  start_waiting(self);
  return {
    [=](atom::expire, uint64_t number) { on_stop_timeout(self, number); },
    [=](atom::resume, uint64_t index) { on_due(self, index); },
    [=](caf::get_atom) { return handles_of(self->state); },
    [=](caf::get_atom, const std::string& name) { return handle_of(self->state, name); },
  };
}

} // namespace ringmaster
