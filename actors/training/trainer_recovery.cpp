// What a TRAINER does when a rank is lost or comes: the attempt is given up, and the next one begins with what is left.
#include "actors/training/trainer.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

void trainer_state::recover(const std::string& why) {
  now_ = phase::recovering;
  if (!why.empty()) {
    latest_problem_ = why;
    settings_.watcher.note(fmt::format("step {} is given up: {}", step_, why));
  }
  ++attempt_;
  news_ = self->clock().now();
  abandoning_ = 1;
  gives_up_.clear();
  for (auto& each : members_)
    if (each.ready) {
      gives_up_.insert(each.device);
      have_given_up(each);
      ask_after(each.device);
    }
  const bool hands_over = why.empty() && std::ranges::any_of(members_, &member::leaves);
  if (calls_ && !hands_over) // else behind that: with its last communicator a node that is drained ends
    end_calls();
  abandoned();
}

void trainer_state::end_calls() {
  ++abandoning_;
  calls_->end([this, attempt = attempt_](const caf::error& problem) {
    if (attempt != attempt_ || now_ != phase::recovering)
      return;
    calls_.reset();
    if (problem && !ending_) // what the next attempt computes could be overwritten
      end_with_model(problem);
    abandoned();
  });
}

void trainer_state::have_given_up(const member& each) {
  auto done = [this, attempt = attempt_, device = each.device] {
    if (attempt == attempt_)
      given_up_by(device);
  };
  self->request(each.handle, settings_.patience, step_abandoned{attempt_})
    .then([done](uint64_t) { done(); },
          [this, done, attempt = attempt_, device = each.device](const caf::error& problem) {
            if (attempt == attempt_ && problem == caf::sec::request_timeout)
              drop(device, "its rank did not give up its step in time"); // it hangs
            done();
          });
}

void trainer_state::ask_after(device_id device) {
  ++abandoning_;
  ask_whether_lost(device, [this, attempt = attempt_, device](const caf::error& lost) {
    if (attempt != attempt_ || now_ != phase::recovering)
      return;
    if (lost)
      drop(device, render(lost));
    abandoned();
  });
}

void trainer_state::ask_again() {
  const auto all = awaited_devices();
  if (asked_at_ || all.empty())
    return;
  asked_at_ = self->clock().now();
  asking_ = all.size();
  for (auto device : all)
    ask_whether_lost(device, [this, attempt = attempt_, device](const caf::error& lost) {
      if (--asking_ == 0)
        asked_at_.reset();
      if (lost && attempt == attempt_)
        found_lost(device, render(lost));
    });
}

std::vector<device_id> trainer_state::awaited_devices() const {
  std::vector<device_id> result;
  if (now_ == phase::recovering && !handing_over_)
    return {gives_up_.begin(), gives_up_.end()};
  for (auto& each : members_)
    result.push_back(each.device);
  return result;
}

void trainer_state::found_lost(device_id device, const std::string& why) {
  const auto found = std::ranges::find(members_, device, &member::device);
  if (found == members_.end())
    return;
  const bool in_step = is_in_step(*found);
  drop(device, why);
  if (!in_step)
    return;
  --world_;
  recover(fmt::format("{} is lost", ringmaster::text_of(device)));
}

void trainer_state::drop(device_id device, const std::string& why) {
  auto found = std::ranges::find(members_, device, &member::device);
  if (found == members_.end())
    return;                           // its rank has ended, too
  const auto behind = why.find(": "); // what became of which device
  const auto lost = fmt::format("{} is lost: {}", ringmaster::text_of(device),
                                behind == std::string::npos ? why : why.substr(behind + 2));
  settings_.watcher.note(lost);
  leave_out(*found, lost);
  members_.erase(found);
  ++may_return_; // its process may stand still
  given_up_by(device);
  hand_over_anew();
}

void trainer_state::given_up_by(device_id device) {
  if (gives_up_.erase(device) > 0)
    begin_again();
}

void trainer_state::abandoned() {
  --abandoning_;
  begin_again();
}

void trainer_state::begin_again() {
  if (abandoning_ > 0 || !gives_up_.empty() || now_ != phase::recovering)
    return;
  self->delayed_send(self, breath, atom::resume_v, attempt_);
}

void trainer_state::go_on(uint64_t attempt) {
  if (attempt != attempt_ || now_ != phase::recovering)
    return;
  if (ending_)
    return take_last_image();
  if (hand_over())
    return;
  if (calls_)
    return end_calls();
  joins_ = false;
  look_for_devices();
  find_model();
  if (step_ == settings_.steps)
    return finish();
  const bool lacks_image = image_.step != step_ || (shows_model_of(step_) && shown_ != step_);
  if (std::exchange(image_asked_in_, attempt_) != attempt_ && lacks_image)
    keep_model(); // whoever was lost may have been asked for a part of it
  begin_step();
}

model_parts trainer_state::parts(bool of_those_that_leave) const {
  model_parts result{*settings_.job};
  for (uint32_t i = 0; i < members_.size(); ++i)
    if (of_those_that_leave || !members_[i].leaves)
      for (auto& part : members_[i].made)
        result.add(part, i);
  if (image_.step == step_)
    for (auto& [part, data] : image_.parts)
      result.add(part, on_host);
  return result;
}

void trainer_state::find_model() {
  if (step_ == 0)
    return;
  auto all = parts().whole();
  if (all)
    return;
  const auto before = std::exchange(step_, image_.parts.empty() ? 0 : image_.step);
  attempts_ = 0;
  for (auto& each : members_)
    each.made.clear();
  settings_.watcher.note(fmt::format("{}: back to {}; to be done again: {}", render(all.error()),
                                     step_ == 0 ? "the first weights" : fmt::format("step {}", step_),
                                     counted(before - step_, "step")));
}

void trainer_state::gather(const std::vector<model_parts::source>& wanted,
                           std::function<void(const caf::expected<found_parts>&)> then) {
  struct gathering {
    found_parts found;
    size_t left = 0;
    caf::error problem;
  };
  auto all = std::make_shared<gathering>();
  all->left = wanted.size() + 1;
  auto all_done = [all, then] {
    if (--all->left == 0)
      then(all->problem ? caf::expected<found_parts>{all->problem} : caf::expected<found_parts>{std::move(all->found)});
  };
  for (auto& each : wanted) {
    auto one_done = [all, all_done, what = each.what](const byte_block& x) {
      all->found[what] = x;
      all_done();
    };
    if (each.owner == on_host) {
      one_done(image_.parts.at(each.what));
      continue;
    }
    auto not_there = [this, all, one_done, step = step_, device = members_[each.owner].device,
                      layer = each.what.layer](std::string_view why) {
      all->problem = make_error(errc::device_lost, fmt::format("{} {}, and had a part of layer {}",
                                                               ringmaster::text_of(device), why, layer));
      has_nothing(device, step);
      one_done({});
    };
    self->request(members_[each.owner].handle, settings_.patience, part_request{step_, each.what})
      .then(
        [one_done, not_there](const byte_block& x) {
          if (x.size() != 0)
            one_done(x);
          else
            not_there("has not kept what it made");
        },
        [not_there](const caf::error&) { not_there("no longer answers"); });
  }
  all_done();
}

void trainer_state::has_nothing(device_id device, uint64_t step) {
  const auto found = std::ranges::find(members_, device, &member::device);
  if (found != members_.end() && step == step_)
    found->made.clear();
}

void trainer_state::take_image(std::function<void(const caf::expected<model_image>&)> then) {
  auto all = parts().whole();
  if (!all)
    return then(all.error());
  gather(*all, [this, then, step = step_](const caf::expected<found_parts>& x) {
    if (!x)
      return then(x.error());
    if (step > step_)
      return then(make_error(errc::aborted, fmt::format("the run has gone back behind step {}", step)));
    image_ = {step, *x};
    then(image_);
  });
}

void trainer_state::part_wanted(const training::part_wanted& x) {
  if (!is_current(x.attempt) || !is_possible(x.rank, x.what.layer < settings_.job->layers.size()))
    return;
  news_ = self->clock().now();
  auto sources = parts().sources_of(x.what);
  if (!sources) // who had it is gone, and was of no use in this step: it goes back
    return recover(fmt::format("nobody has the whole of layer {} as of step {} any more", x.what.layer, step_));
  gather(*sources, [this, x](const caf::expected<found_parts>& found) {
    if (!is_current(x.attempt))
      return;
    if (found)
      give(x, *found);
    else
      recover(render(found.error()));
  });
}

void trainer_state::give(const training::part_wanted& x, const found_parts& from) {
  std::byte* to = nullptr;
  const auto bytes = bytes_of(*settings_.job, x.what);
  auto block = byte_block::uninitialized(bytes, to);
  std::fill_n(to, bytes, std::byte{});
  for (auto& [what, data] : from)
    if (what.kind == x.what.kind && what.layer == x.what.layer)
      copy_common(*settings_.job, what, data.bytes(), x.what, {to, bytes});
  self->send(members_[x.rank].handle, part_found{x.attempt, x.what, std::move(block)});
}

void trainer_state::excuse(caf::timespan late) {
  if (late < look_every)
    return;
  news_ += late;
  if (recording_)
    recording_->due += late;
  if (calls_)
    calls_->excuse(late);
}

/// Of whom; empty: of nobody.
std::string trainer_state::awaited() const {
  if (handing_over_)
    return "what the ranks that leave have of the model has not come";
  if (now_ == phase::recovering && !gives_up_.empty())
    return fmt::format("{} has not said that its rank has given the step up", ringmaster::text_of(*gives_up_.begin()));
  if (now_ != phase::stepping || step_ >= settings_.steps || lacks_room_ || recording_)
    return {};
  const auto why = desk_.waiting();
  return why.empty() ? "what its ranks do and send has no end yet" : why;
}

void trainer_state::tell_silence() {
  constexpr caf::timespan answers_within = std::chrono::seconds{2};
  const auto now = self->clock().now();
  const auto silent = now - news_;
  if (silent < quiet_max - answers_within)
    return;
  auto why = awaited();
  if (why.empty())
    return;
  ask_again();
  if (std::exchange(silent_since_, news_) != news_)
    told_after_ = quiet_max;
  if (silent < told_after_)
    return;
  told_after_ = 2 * told_after_ + (told_again - quiet_max);
  if (asked_at_ && now - *asked_at_ >= answers_within)
    why = "the coordinator does not answer";
  settings_.watcher.note(fmt::format("step {} stands still, for {} now: {}; {} behind {}", step_,
                                     duration_text(std::chrono::floor<std::chrono::seconds>(silent)), why,
                                     now_ == phase::recovering
                                       ? "whoever is late is left out where its device is lost, or"
                                       : "it is given up where a rank is lost, or",
                                     duration_text(settings_.patience)));
}

void trainer_state::tick() {
  if (now_ == phase::over)
    return;
  self->delayed_send(self, look_every, atom::tick_v);
  look_for_devices();
  look_for_drains();
  const auto now = self->clock().now();
  excuse(now - std::exchange(ticked_, now) - look_every);
  room_made(); // if there is any
  if (recording_ && now >= recording_->due)
    return on_record(recording_->number,
                     make_error(errc::timed_out, fmt::format("the coordinator has not told within {} whether the "
                                                             "journal has it",
                                                             duration_text(settings_.operation_limit))));
  tell_silence();
  if (now_ == phase::recovering)
    ask_again();
  if (auto why = now_ == phase::stepping && calls_ ? calls_->overdue() : std::string{}; !why.empty())
    return recover(why);
  if (now_ == phase::gathering && !settings_.starts_ranks)
    for (auto& each : members_)
      if (!each.handle)
        ask_whether_it_comes(each.device);
  if (now_ == phase::stepping && recording_ && all_have_ended())
    news_ = now; // the journal is waited for, up to its own limit
  if (now - news_ < settings_.patience)
    return;
  const auto patience = duration_text(settings_.patience);
  if (now_ == phase::gathering) {
    for (auto& each : members_)
      if (!each.ready) {
        if (each.handle)
          leave_out(each, "it was not ready in time");
        else
          ++may_return_; // its process is late, or gone
        settings_.watcher.note(fmt::format("{} has not become ready within {}", ringmaster::text_of(each.device),
                                           patience));
      }
    std::erase_if(members_, [](auto& each) { return !each.ready; });
    return gathered();
  }
  if (now_ != phase::stepping)
    return;
  auto why = desk_.waiting();
  recover(fmt::format("nothing has happened for {}, which training.patience allows{}", patience,
                      why.empty() ? "" : ": " + why));
}

} // namespace ringmaster::training
