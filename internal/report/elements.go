package report

// HasMoreElements reports whether the lists in JSON have more elements in total than a limit, without decoding it: an element of 3 bytes, "{},",
// takes hundreds in memory.
func HasMoreElements(content []byte, most int) bool {
	count, quoted := 0, false
	var open []byte // the brackets that are not closed yet
	for i := 0; i < len(content); i++ {
		c := content[i]
		switch {
		case c == '\\':
			i++ // only strings have escapes
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open = append(open, c)
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
		if inList := len(open) > 0 && open[len(open)-1] == '['; inList && !quoted && (c == '[' || c == ',') {
			count++
		}
		if count > most {
			return true
		}
	}
	return false
}
