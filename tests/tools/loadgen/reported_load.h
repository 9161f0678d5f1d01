#pragma once

#include <vector>

#include "tools/loadgen/report.h"

namespace torpor::loadgen {

// A small load with something of everything, for the tests of what a report looks like.
inline std::vector<ReportedFunction> SomeFunctions() {
  return {{"resnet", std::chrono::milliseconds(80), 98}, {"a, \"b\"", std::chrono::seconds(1), 50}};
}

inline std::vector<Record> SomeRecords() {
  using std::chrono::milliseconds;
  const auto answered = [](std::size_t function, int second, int latency_ms, Residency path) {
    Record record;
    record.function = function;
    record.intended = std::chrono::seconds(second);
    record.http_status = 200;
    record.latency = milliseconds(latency_ms);
    record.gpu = path == Residency::kPeer ? 1 : 0;
    record.residency = path;
    record.queue = milliseconds(1);
    record.run = milliseconds(19);
    return record;
  };
  std::vector<Record> records = {
      answered(0, -1, 500, Residency::kHost), answered(0, 0, 20, Residency::kResident),
      answered(0, 1, 64, Residency::kHost),   answered(0, 61, 100, Residency::kHost),
      answered(0, 62, 26, Residency::kPeer),  answered(1, 62, 700, Residency::kResident)};
  records[2].swap = milliseconds(40);
  records[3].swap = milliseconds(44);
  records[3].lag = milliseconds(16);
  Record timeout;
  timeout.function = 1;
  timeout.intended = std::chrono::seconds(70);
  timeout.outcome = Outcome::kTimeout;
  timeout.latency = milliseconds(30'000);
  records.push_back(timeout);
  return records;
}

inline Report SomeReport() {
  return Summarise(SomeFunctions(), SomeRecords(), std::chrono::minutes(2));
}

}  // namespace torpor::loadgen
