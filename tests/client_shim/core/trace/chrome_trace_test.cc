#include "client_shim/core/trace/chrome_trace.h"

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace torpor::shim {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const FinishedCall kDownload{.name = "cudaMemcpy",
                             .caller = "fetch(\"a\\b\") in libmodel.so",
                             .commands = 1,
                             .answers = 1,
                             .bytes_up = 80,
                             .bytes_down = 5000,
                             .waited = 1500us};

TEST(ChromeTrace, IsAnArrayOfEvents) {
  ChromeTrace trace(41, "program");
  trace.AddCall(kDownload, {1234567ns, 2ms, 43});
  trace.AddWait(TracedWaitFor::kLease, {1300us, 7us, 43});
  trace.AddSection("inference 1", 1ms, 3ms);
  trace.End();
  const json events = json::parse(trace.Take());
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0], (json{{"ph", "M"},
                             {"name", "process_name"},
                             {"pid", 41},
                             {"tid", 0},
                             {"args", {{"name", "program"}}}}));
  EXPECT_EQ(events[2], (json{{"ph", "X"},
                             {"name", "cudaMemcpy"},
                             {"cat", "synchronous"},
                             {"ts", 1234.567},
                             {"dur", 2000.0},
                             {"pid", 41},
                             {"tid", 43},
                             {"args",
                              {{"kind", "synchronous"},
                               {"commands", 1},
                               {"answers", 1},
                               {"bytes_up", 80},
                               {"bytes_down", 5000},
                               {"caller", "fetch(\"a\\b\") in libmodel.so"}}}}));
  EXPECT_EQ(events[3].at("name"), "wait for a lease");
  EXPECT_EQ(events[3].at("cat"), "wait");
  EXPECT_EQ(events[4].at("name"), "inference 1");
  EXPECT_EQ(events[4].at("tid"), events[1].at("tid")) << "the line that is named \"sections\"";
}

TEST(ChromeTrace, IsTakenPieceByPiece) {
  ChromeTrace trace(1, "program");
  std::string text = trace.Take();
  EXPECT_EQ(trace.pending_bytes(), 0u);
  trace.AddCall(kDownload, {});
  text += trace.Take();
  trace.End();
  text += trace.Take();
  EXPECT_EQ(json::parse(text).size(), 3u);
}

TEST(ChromeTrace, ControlCharactersAreEscaped) {
  ChromeTrace trace(1, "program");
  trace.AddSection("a\tb\n", 0s, 0s);
  trace.End();
  EXPECT_EQ(json::parse(trace.Take()).back().at("name"), "a\tb\n");
}

}  // namespace
}  // namespace torpor::shim
