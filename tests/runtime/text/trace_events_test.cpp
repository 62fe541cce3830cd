#include "runtime/text/trace_events.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace ringmaster;

TEST_CASE("trace events: each kind of event is a line of the Trace Event Format") {
  trace_events trace{3};
  trace.name_process(1, "rank \"0\"");
  trace.sort_process(1, 7);
  trace.name_thread({1, 2}, "out");
  trace.slice({1, 2}, "operation", "send", 1.5, 0.25, {{"bytes", 4}});
  trace.slice({1, 2}, {}, "copy", 2, 0, {});
  trace.instant({1, 3}, "cluster", "device lost", 3);
  trace.counter(1, "memory", 4, "bytes", 9);
  trace.flow_start({1, 2}, "sent", 5, 1.5);
  trace.flow_finish({2, 2}, "sent", 5, 1.75);
  CHECK(trace.count() == 9);
  CHECK(trace.take() == R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"rank \"0\""}},
{"ph":"M","name":"process_sort_index","pid":1,"tid":0,"args":{"sort_index":7}},
{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"out"}},
{"ph":"X","cat":"operation","name":"send","pid":1,"tid":2,"ts":1.500,"dur":0.250,"args":{"bytes":4}},
{"ph":"X","name":"copy","pid":1,"tid":2,"ts":2.000,"dur":0.000},
{"ph":"i","cat":"cluster","name":"device lost","s":"g","pid":1,"tid":3,"ts":3.000},
{"ph":"C","name":"memory","pid":1,"ts":4.000,"args":{"bytes":9}},
{"ph":"s","cat":"sent","name":"sent","id":5,"pid":1,"tid":2,"ts":1.500},
{"ph":"f","cat":"sent","name":"sent","id":5,"pid":2,"tid":2,"ts":1.750,"bp":"e"}
]}
)");
}

TEST_CASE("trace events: a trace without events is a document, too") {
  CHECK(trace_events{6}.take() == "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n");
}
