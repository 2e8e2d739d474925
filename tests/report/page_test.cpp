#include "report/page.h"

#include <gmock/gmock.h>

#include "riffle/error.h"

namespace riffle::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// What a browser would take as the data: up to the first end of an element.
Json read_back(const std::string& page) {
  const std::size_t start = page.find("<d>") + 3;
  return Json::parse(page.substr(start, page.find("</", start) - start));
}

TEST(Page, HoldsTheData) {
  const Json data{{"a", 1}, {"b", {1.5, nullptr, "text"}}};
  EXPECT_EQ(read_back(fill_page("before<d>@DATA@</d>after", data)), data);
}

TEST(Page, NoTextEndsItsElement) {
  for (const std::string text : {"</script>", "</SCRIPT >", "<!--", "-->", "]]>", "<script", "&lt;",
                                 "\u2028", "@DATA@", "\\u003c/script>", "\"</d>"}) {
    const Json data{{text, text}};
    const std::string page = fill_page("<d>@DATA@</d>", data);
    EXPECT_EQ(read_back(page), data) << text;
    const std::string inside = page.substr(3, page.size() - 7);
    EXPECT_THAT(inside, Not(HasSubstr("<"))) << text;
    EXPECT_THAT(inside, Not(HasSubstr(">"))) << text;
  }
}

TEST(Page, NeedsOnePlace) {
  EXPECT_THROW(fill_page("nothing", Json::object()), UsageError);
  EXPECT_THROW(fill_page("@DATA@ @DATA@", Json::object()), UsageError);
}

TEST(Page, BytesThatAreNoTextBecomeMarks) {
  EXPECT_EQ(read_back(fill_page("<d>@DATA@</d>", Json("a\xff"))), Json("a\ufffd"));
}

}  // namespace
}  // namespace riffle::report
