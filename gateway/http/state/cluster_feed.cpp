#include "gateway/http/state/cluster_feed.hpp"

#include "gateway/http/state/cluster_metrics.hpp"
#include "gateway/http/state/record_json.hpp"
#include "gateway/http/state/status_changes.hpp"
#include "messages/errc.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace ringmaster::gateway {

namespace {

json with_version(uint64_t version, json status) {
  json result{{"version", version}};
  result.update(status);
  return result;
}

json journal_event(uint64_t last, const std::deque<std::pair<uint64_t, proto::Record>>& records, uint64_t skipped) {
  auto list = json::array();
  for (auto& [index, record] : records)
    list.push_back(record_json(index, record));
  return {{"last", last}, {"records", std::move(list)}, {"skipped", skipped}};
}

} // namespace

cluster_snapshot::cluster_snapshot(uint64_t version, json status)
  : version_(version), status_(with_version(version, std::move(status))) {}

std::shared_ptr<const std::string> cluster_snapshot::text() const {
  std::call_once(once_, [this] { text_ = std::make_shared<const std::string>(text_of(status_)); });
  return text_;
}

cluster_feed::cluster_feed(cluster_source& source, event_hub& hub, feed_options options)
  : source_(source), hub_(hub), options_(std::move(options)) {
  facts_.coordinator = options_.coordinator;
  facts_.error = "it was not asked yet";
  ready_ = readiness();
}

cluster_feed::~cluster_feed() {
  {
    std::scoped_lock lock{stop_mutex_};
    stops_ = true;
  }
  stop_wanted_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

void cluster_feed::start() {
  thread_ = std::thread{[this] { run(); }};
}

void cluster_feed::run() {
  auto due = std::chrono::steady_clock::now();
  for (;;) {
    look();
    const auto pause = hub_.readers() > 0 ? options_.interval : options_.idle_interval;
    due = std::max(due + options_.interval, std::chrono::steady_clock::now());
    // A reader that connects meanwhile must not wait for the longer pause.
    for (auto waited = std::chrono::milliseconds{0}; waited < pause; waited += options_.interval) {
      std::unique_lock lock{stop_mutex_};
      if (stop_wanted_.wait_until(lock, due + waited, [this] { return stops_; }))
        return;
      if (hub_.readers() > 0)
        break;
    }
  }
}

void cluster_feed::look() {
  auto status = source_.status();
  new_records news;
  bool more = true;
  for (uint32_t page = 0; page < options_.pages_max && more; ++page)
    more = read_page(news);
  {
    std::scoped_lock lock{mutex_};
    ++looks_;
    looked_at_ = std::chrono::steady_clock::now();
    caught_up_ = !more && !journal_error_;
    if (status) {
      if (latest_ && facts_.error != "")
        spdlog::info("the coordinator answers again");
      facts_.error = "";
      status_ = std::move(*status);
    } else {
      if (!latest_ || facts_.error == "")
        spdlog::warn("the coordinator does not answer: {}", render(status.error()));
      facts_.error = render(status.error());
    }
    if (status_.time_ns() == 0) { // there was never one
      ready_ = readiness();
      return;
    }
  }
  publish(status_, std::move(news));
}

bool cluster_feed::read_page(new_records& news) {
  proto::JournalTailRequest request;
  request.set_records_max(options_.records_max);
  request.set_forward(true);
  request.set_after(facts_.folded);
  auto page = source_.journal(request);
  std::scoped_lock lock{mutex_};
  journal_error_ = page ? caf::error{} : page.error();
  if (!page) {
    facts_.has_journal = code_of(page.error()) != errc::refused;
    return false;
  }
  if (page->last_index() < facts_.folded) {
    forget();
    return true;
  }
  facts_.first_index = page->first_index();
  facts_.last_index = page->last_index();
  facts_.unsynced = page->unsynced();
  for (int i = 0; i < page->records_size(); ++i)
    fold(page->indices(i), page->records(i), news);
  if (page->searched_last() > facts_.folded)
    facts_.folded = page->searched_last();
  return facts_.folded < facts_.last_index;
}

void cluster_feed::forget() {
  spdlog::warn("the journal is a new one: metrics start again");
  facts_.folded = 0;
  totals_ = {};
  trainings_ = {};
  timeline_ = {};
}

void cluster_feed::fold(uint64_t index, const proto::Record& record, new_records& news) {
  totals_.add(record);
  trainings_.add(record);
  if (auto event = timeline_.add(index, record); !event.is_null())
    news.timeline.push_back(std::move(event));
  if (record.has_rank_ended()) { // one for each rank of an operation: they would displace all others
    ++news.skipped;
    return;
  }
  news.shown.emplace_back(index, record);
  if (news.shown.size() <= options_.event_records_max)
    return;
  news.shown.pop_front();
  ++news.skipped;
}

void cluster_feed::publish(const proto::ClusterStatus& status, new_records news) {
  auto written = writer_.write(status, facts_);
  const auto before = latest();
  auto changes = before ? status_changes(before->status(), written) : std::nullopt;
  std::vector<std::string> events;
  auto now = before;
  if (!before || changes) {
    now = std::make_shared<const cluster_snapshot>(before ? before->version() + 1 : 1, std::move(written));
    if (changes) {
      json delta{{"version", now->version()}, {"base", before->version()}};
      delta.update(*changes);
      events.push_back(event_text("delta", delta));
    }
  }
  json fresh;
  {
    std::scoped_lock lock{mutex_};
    latest_ = now;
    ready_ = readiness();
    route_bytes_ = writer_.route_bytes();
    fresh = trainings_.take_fresh();
  }
  if (!news.shown.empty() || news.skipped > 0)
    events.push_back(event_text("journal", journal_event(facts_.last_index, news.shown, news.skipped)));
  if (!news.timeline.empty())
    events.push_back(event_text("timeline", json{{"events", std::move(news.timeline)}}));
  if (!fresh.is_null())
    events.push_back(event_text("training", fresh));
  hub_.publish(std::move(events), [now] {
    return std::make_shared<const std::string>(fmt::format("event: snapshot\ndata: {}\n\n", *now->text()));
  });
}

std::shared_ptr<const cluster_snapshot> cluster_feed::latest() const {
  std::scoped_lock lock{mutex_};
  return latest_;
}

caf::error cluster_feed::ready() const {
  std::scoped_lock lock{mutex_};
  return ready_;
}

caf::error cluster_feed::readiness() const {
  if (facts_.error != "" || !latest_)
    return make_error(errc::unreachable, "the coordinator does not answer: " + facts_.error);
  if (!caught_up_ && facts_.has_journal)
    return make_error(errc::in_use,
                      fmt::format("the journal is being read: {} of {} records{}", facts_.folded, facts_.last_index,
                                  journal_error_ ? ", " + render(journal_error_) : ""));
  return caf::none;
}

json cluster_feed::trainings(size_t points) const {
  std::scoped_lock lock{mutex_};
  return trainings_.write(points);
}

json cluster_feed::timeline_events() const {
  std::scoped_lock lock{mutex_};
  auto list = json::array();
  for (auto& event : timeline_.events())
    list.push_back(event);
  return {{"events", std::move(list)}};
}

void cluster_feed::write_metrics(metric_page& page) const {
  std::scoped_lock lock{mutex_};
  write_cluster(page, status_, facts_, route_bytes_);
  totals_.write_to(page);
  write_trainings(page, trainings_);
  const auto age = std::chrono::steady_clock::now() - looked_at_;
  page.counter("ringmaster_gateway_looks_total", "How often the gateway has asked for the cluster's state.")
    .add(looks_);
  page.gauge("ringmaster_gateway_state_age_seconds", "Time since it did so last.")
    .add(looks_ == 0 ? 0 : std::chrono::duration<double>(age).count());
}

} // namespace ringmaster::gateway
