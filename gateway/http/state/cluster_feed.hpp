#pragma once

#include "gateway/http/metrics/journal_totals.hpp"
#include "gateway/http/state/cluster_source.hpp"
#include "gateway/http/state/event_hub.hpp"
#include "gateway/http/state/status_json.hpp"
#include "gateway/http/state/timeline.hpp"
#include "gateway/http/state/training_runs.hpp"

#include <caf/error.hpp>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace ringmaster::gateway {

/// The state of the cluster at one moment. Never changes.
class cluster_snapshot {
public:
  cluster_snapshot(uint64_t version, json status);

  uint64_t version() const { return version_; }
  /// `Status` in openapi.json.
  const json& status() const { return status_; }
  /// The same as text, which is made when it is needed first.
  std::shared_ptr<const std::string> text() const;

private:
  const uint64_t version_;
  json status_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const std::string> text_;
};

struct feed_options {
  std::string coordinator;                       ///< HOST:PORT, for people.
  std::chrono::milliseconds interval{250};       ///< Between two looks.
  std::chrono::milliseconds idle_interval{1000}; ///< The same while no reader of events is connected.
  uint32_t records_max = 5000;                   ///< Of the journal in one request.
  uint32_t pages_max = 20;                       ///< Of the journal in one look.
  size_t event_records_max = 100;                ///< In one event; the journal has the others.
};

/// Follows a cluster: asks for its status and reads its journal, folds both into what the HTTP server shows, and
/// publishes what has changed. One thread asks; all others read.
class cluster_feed {
public:
  cluster_feed(cluster_source& source, event_hub& hub, feed_options options);
  /// Stops the thread.
  ~cluster_feed();
  cluster_feed(const cluster_feed&) = delete;
  cluster_feed& operator=(const cluster_feed&) = delete;

  /// Starts the thread that looks at intervals.
  void start();
  /// Looks once. Not while the thread runs.
  void look();

  const feed_options& options() const { return options_; }
  /// Null before the first status.
  std::shared_ptr<const cluster_snapshot> latest() const;
  /// Why there is no complete and current state. No error: there is one.
  caf::error ready() const;
  json trainings(size_t points) const;
  json timeline_events() const;
  /// Adds all metrics of the cluster.
  void write_metrics(metric_page& page) const;

private:
  struct new_records {
    std::deque<std::pair<uint64_t, proto::Record>> shown; ///< The newest, oldest first.
    json timeline = json::array();
    uint64_t skipped = 0;
  };

  void run();
  /// Reads the records after the last one that was folded. Returns whether there are more.
  bool read_page(new_records& news);
  void fold(uint64_t index, const proto::Record& record, new_records& news);
  /// The journal is another one than before: it starts again.
  void forget();
  void publish(const proto::ClusterStatus& status, new_records news);
  /// With `mutex_` held.
  caf::error readiness() const;

  cluster_source& source_;
  event_hub& hub_;
  const feed_options options_;
  status_writer writer_; ///< Of the thread that looks.

  mutable std::mutex mutex_; ///< For what follows.
  std::shared_ptr<const cluster_snapshot> latest_;
  proto::ClusterStatus status_;
  std::map<std::string, uint64_t> route_bytes_;
  cluster_facts facts_;
  caf::error journal_error_;
  bool caught_up_ = false;
  caf::error ready_; ///< Of what `latest_` shows: it never runs ahead of it.
  journal_totals totals_;
  training_runs trainings_;
  timeline timeline_;
  uint64_t looks_ = 0;
  std::chrono::steady_clock::time_point looked_at_;

  std::mutex stop_mutex_;
  std::condition_variable stop_wanted_;
  bool stops_ = false;
  std::thread thread_;
};

} // namespace ringmaster::gateway
