//! The page: one file that needs nothing else, with the figures in it as they are stored. The drawing is done
//! by the script in `page.js`, which knows charts, bars and parts, and nothing of what was measured.

const FRAME: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page over these parts, each a JSON text. `<` is escaped, so that no text in it ends the script
/// element.
pub(crate) fn html(parts: &[String]) -> String {
    let data = format!("[{}]", parts.join(",")).replace('<', "\\u003c");
    FRAME.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT).replace("/*DATA*/", &data)
}

#[cfg(test)]
mod tests {
    use super::super::chart;
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let page = html(&[chart::example().json().to_string()]);
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            let is_there = page.replace("http://www.w3.org/2000/svg", "").contains(outside);
            assert!(!is_there, "{outside}");
        }
    }

    #[test]
    fn figures_cannot_end_the_element_they_stand_in() {
        let mut chart = chart::example();
        chart.title = "</script><b>".into();
        let page = html(&[chart.json().to_string()]);
        assert_eq!(page.matches("</script>").count(), FRAME.matches("</script>").count());
    }

    #[test]
    fn every_place_in_the_frame_is_filled() {
        assert!(!html(&[]).contains("/*"), "style and script hold no such comments either");
    }
}
