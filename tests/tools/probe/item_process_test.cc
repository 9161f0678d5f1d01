#include "tools/probe/item_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace torpor::probe {
namespace {

using testing::HasSubstr;

void TellTwoThings(Report& report) {
  report.Numbers("create", "us", {29, 30.5});
  report.Texts("hint", {"honoured"});
}

void TellAndCrash(Report& report) {
  report.Failed("map", "CUDA_ERROR_INVALID_VALUE");
  std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's would say more, and end otherwise
  std::raise(SIGSEGV);
}

void TellAndEnd(Report& report) {
  report.Failed("cuInit", "CUDA_ERROR_NO_DEVICE");
  _exit(3);
}

// A hung driver does not react to SIGTERM either.
void TellAndHang(Report& report) {
  report.Texts("launch", {"never ends"});
  std::signal(SIGTERM, SIG_IGN);
  while (true) pause();
}

// A process that outlives the item, as the second executor of an item may.
void LeaveAChild(Report& report) {
  if (fork() == 0) {
    while (true) pause();
  }
  report.Texts("child", {"left behind"});
}

TEST(ItemProcessTest, GivesTheLinesOfAnItem) {
  const ItemEnd end = RunInProcess({"vmm", &TellTwoThings, 10, ""});
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(
      end.lines,
      "{\"name\":\"vmm/create\",\"values\":[29.0,30.5],\"units\":\"us\",\"error\":null}\n"
      "{\"name\":\"vmm/hint\",\"values\":[\"honoured\"],\"units\":\"text\",\"error\":null}\n");
}

TEST(ItemProcessTest, AnItemThatCrashesKeepsWhatItHasTold) {
  const ItemEnd end = RunInProcess({"vmm", &TellAndCrash, 10, ""});
  EXPECT_THAT(end.error, HasSubstr("ended by signal 11"));
  EXPECT_THAT(end.lines, HasSubstr("\"name\":\"vmm/map\",\"values\":[],\"units\":\"\","
                                   "\"error\":\"CUDA_ERROR_INVALID_VALUE\""));
}

TEST(ItemProcessTest, TheStatusOfAnItemIsTold) {
  const ItemEnd end = RunInProcess({"vmm", &TellAndEnd, 10, ""});
  EXPECT_EQ(end.error, "ended with status 3");
  EXPECT_THAT(end.lines, HasSubstr("CUDA_ERROR_NO_DEVICE"));
}

TEST(ItemProcessTest, AnItemThatHangsIsEnded) {
  const ItemEnd end = RunInProcess({"vmm", &TellAndHang, 1, ""});
  EXPECT_THAT(end.error, HasSubstr("hung"));
  EXPECT_THAT(end.lines, HasSubstr("never ends"));
  EXPECT_GE(end.seconds, 1);
}

TEST(ItemProcessTest, AnItemEndsWithItsOwnProcess) {
  const ItemEnd end = RunInProcess({"vmm", &LeaveAChild, 10, ""});
  EXPECT_EQ(end.error, "");
  EXPECT_LT(end.seconds, 10);
}

}  // namespace
}  // namespace torpor::probe
