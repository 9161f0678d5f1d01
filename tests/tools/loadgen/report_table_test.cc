#include <gtest/gtest.h>

#include "tests/tools/loadgen/reported_load.h"
#include "tools/loadgen/report.h"

namespace torpor::loadgen {
namespace {

constexpr const char* kTable =
    R"table(function  requests  errors  wrong  p50 ms   p98 ms   p99 ms  in time  hits  pcie  nvlink  queue ms  swap ms  run ms
resnet           4       0      0    26.0    100.0    100.0    75.0%     1     2       1       1.0     21.0    19.0
a, "b"           2       1      0   700.0  30000.0  30000.0    50.0%     1     0       0       1.0      0.0    19.0
all              6       1      0    64.0  30000.0  30000.0    66.7%     2     2       1       1.0     16.8    19.0

path      requests  in time   p50 ms   p98 ms   p99 ms  sent p98  queue ms  swap ms  run ms
resident         2   100.0%     20.0    700.0    700.0     700.0       1.0      0.0    19.0
host             2    50.0%     64.0    100.0    100.0      84.0       1.0     42.0    19.0
peer             1   100.0%     26.0     26.0     26.0      26.0       1.0      0.0    19.0
unknown          1     0.0%  30000.0  30000.0  30000.0   30000.0       0.0      0.0     0.0
Latencies count from the time at which a request was meant to be sent, "sent" ones from when
it was; in time: right, and within the objective. hits: the model was on the GPU; pcie, nvlink:
it was swapped in from the host, from another GPU. queue, swap, run: means of what the router
told. Paths: where the model was; unknown: the answer did not say, or there was none.
1 of 2 functions comply with their objectives
GPU 0: 4 requests, 0% busy
GPU 1: 1 requests, 0% busy
generator's own lag: p50 0.0 ms, p99 16.0 ms, max 16.0 ms
requests sent over 10 ms late: 1
)table";

TEST(ReportTableTest, HasALineAFunctionAndALineAPath) {
  EXPECT_EQ(ReportTable(SomeReport()), kTable);
}

}  // namespace
}  // namespace torpor::loadgen
