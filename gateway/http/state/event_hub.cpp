#include "gateway/http/state/event_hub.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster::gateway {

std::string event_text(const std::string& name, const json& data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, text_of(data));
}

void event_hub::publish(std::vector<std::string> events, std::function<text()> greeting) {
  {
    std::scoped_lock lock{mutex_};
    greeting_ = std::move(greeting);
    if (readers_ == 0) { // no reader is behind
      first_ += events_.size() + events.size();
      events_.clear();
    } else {
      for (auto& x : events)
        events_.push_back(std::make_shared<const std::string>(std::move(x)));
      for (; events_.size() > limits_.events_max; ++first_)
        events_.pop_front();
    }
    ensure(events_.size() <= limits_.events_max, "no more events are kept than a reader may be behind");
  }
  changed_.notify_all();
}

void event_hub::close() {
  {
    std::scoped_lock lock{mutex_};
    closed_ = true;
  }
  changed_.notify_all();
}

size_t event_hub::readers() const {
  std::scoped_lock lock{mutex_};
  return readers_;
}

std::unique_ptr<event_hub::reader> event_hub::open() {
  std::scoped_lock lock{mutex_};
  if (closed_ || readers_ >= limits_.readers_max || !greeting_) {
    ++refused_;
    return nullptr;
  }
  ++readers_;
  return std::unique_ptr<reader>{new reader{*this, first_ + events_.size(), greeting_}};
}

event_hub::reader::~reader() {
  std::scoped_lock lock{hub_.mutex_};
  ensure(hub_.readers_ > 0, "a reader that leaves was counted");
  --hub_.readers_;
}

event_hub::reader::batch event_hub::reader::next(std::chrono::milliseconds within) {
  if (auto greeting = std::exchange(greeting_, nullptr))
    return {{greeting()}, state::open};
  std::unique_lock lock{hub_.mutex_};
  const auto end = [this] { return hub_.first_ + hub_.events_.size(); };
  hub_.changed_.wait_for(lock, within, [&] { return hub_.closed_ || at_ < end(); });
  if (hub_.closed_)
    return {{}, state::closed};
  if (at_ < hub_.first_) {
    ++hub_.dropped_;
    return {{}, state::too_slow};
  }
  batch result;
  for (; at_ < end(); ++at_)
    result.events.push_back(hub_.events_[at_ - hub_.first_]);
  return result;
}

} // namespace ringmaster::gateway
