#include "tools/text_table/text_table.h"

#include <gtest/gtest.h>

namespace torpor {
namespace {

TEST(TextTableTest, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table({{"NAME"}, {"BYTES", TextTable::Align::kRight}, {"STATE"}});
  table.AddRow({"a-long-name", "1", "idle"});
  table.AddRow({"b", "100000", ""});
  EXPECT_EQ(table.Render(),
            "NAME          BYTES  STATE\n"
            "a-long-name       1  idle\n"
            "b            100000\n");
}

TEST(TextTableTest, WithoutRowsThereAreTheTitles) {
  EXPECT_EQ(TextTable({{"NAME"}, {"BYTES"}}).Render(), "NAME  BYTES\n");
}

}  // namespace
}  // namespace torpor
