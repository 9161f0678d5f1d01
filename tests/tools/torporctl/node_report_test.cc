#include "tools/torporctl/node_report.h"

#include <gtest/gtest.h>

namespace torpor::torporctl {
namespace {

TEST(NodeReportTest, BytesAreReadable) {
  EXPECT_EQ(HumanBytes(0), "0B");
  EXPECT_EQ(HumanBytes(1023), "1023B");
  EXPECT_EQ(HumanBytes(1536), "1.5KiB");
  EXPECT_EQ(HumanBytes(std::uint64_t{3} << 30), "3.0GiB");
  EXPECT_EQ(HumanBytes(~std::uint64_t{0}), "16777216.0TiB");
}

TEST(NodeReportTest, FunctionsAreATableOrJson) {
  v1::ListFunctionsResponse functions;
  v1::FunctionStatus& function = *functions.add_functions();
  function.set_name("digits");
  function.set_state("idle");
  function.add_resident_gpus(0);
  function.add_resident_gpus(1);
  function.set_image_bytes(1 << 20);
  function.set_requests(12);
  function.set_is_pinned(true);
  function.set_health("serving");
  v1::InstanceStatus& instance = *function.add_instances();
  instance.set_name("a");
  instance.set_state("absent");
  instance.set_health("unproven");
  instance.set_upstream("127.0.0.1:9001");
  instance.mutable_process()->set_state("pausing");
  instance.mutable_process()->set_restarts(2);
  instance.mutable_process()->set_last_end("signal 9");
  EXPECT_EQ(FunctionsTable(functions),
            "FUNCTION  STATE   HEALTH    PROCESS              RESIDENT ON  PINNED   IMAGE  LIMIT  "
            "SESSIONS  REQUESTS  "
            "ERRORS  SWAPS IN  GPU SECONDS  UPSTREAM\n"
            "digits    idle    serving   -                    0,1          yes     1.0MiB    gpu   "
            "      0        12  "
            "     0         0        0.000  -\n"
            "digits/a  absent  unproven  pausing, 2 restarts  -            -           0B      -   "
            "      0         0  "
            "     -         0        0.000  127.0.0.1:9001\n");
  EXPECT_NE(FunctionsJson(functions).find("\"health\": \"unproven\""), std::string::npos);
  EXPECT_NE(FunctionsJson(functions).find("\"last_end\": \"signal 9\""), std::string::npos);
  EXPECT_NE(FunctionsJson(functions).find("\"process\": null"), std::string::npos);
  EXPECT_NE(FunctionsJson(functions).find("\"requests\": 12"), std::string::npos);
}

TEST(NodeReportTest, AddressesAreToldWithTheReasonForTheirMode) {
  v1::NodeStatus status;
  status.set_address_mode("map");
  status.set_address_bytes(std::uint64_t{16} << 40);
  status.set_free_address_bytes(std::uint64_t{8} << 40);
  EXPECT_NE(StatusTable(status).find("addresses map, 8.0TiB of 16.0TiB free\n\n"),
            std::string::npos);
  status.set_address_mode("translate");
  status.set_address_fallback("the driver refuses");
  EXPECT_NE(StatusTable(status).find("free\n          instead of map: the driver refuses\n"),
            std::string::npos);
  EXPECT_NE(StatusJson(status).find("\"address_fallback\": \"the driver refuses\""),
            std::string::npos);
}

TEST(NodeReportTest, HostMemoryIsToldWithItsBudget) {
  v1::NodeStatus status;
  status.set_host_memory_bytes(std::uint64_t{8} << 30);
  status.set_host_memory_used_bytes(std::uint64_t{3} << 30);
  status.set_host_memory_refusals(2);
  EXPECT_NE(StatusTable(status).find("host      3.0GiB of 8.0GiB allocated, 2 refused\n"),
            std::string::npos);
  EXPECT_NE(StatusJson(status).find("\"host_memory_bytes\": 8589934592"), std::string::npos);
}

TEST(NodeReportTest, AFunctionIsToldWithItsObjective) {
  v1::FunctionStatus function;
  function.set_name("digits");
  function.set_state("queued");
  function.set_deadline_ms(80);
  function.set_percentile(0.98);
  function.set_finished(200);
  function.set_in_time(199);
  function.set_is_compliant(true);
  function.set_waiting(3);
  EXPECT_EQ(FunctionText(function),
            "function     digits\n"
            "state        queued\n"
            "objective    98% within 80ms\n"
            "in time      199 of 200, 99.5%\n"
            "complies     yes\n"
            "standing     -\n"
            "waiting      3, any number may\n"
            "priority     0\n"
            "keep alive   off\n"
            "process      -\n"
            "strikes      0\n");
  function.set_required_count(-150);
  function.set_is_first_group(true);
  EXPECT_NE(
      FunctionText(function).find("standing     -150.0 requests in time required, first group\n"),
      std::string::npos);
  EXPECT_NE(FunctionJson(function).find("\"percentile\": 0.98"), std::string::npos);
}

}  // namespace
}  // namespace torpor::torporctl
