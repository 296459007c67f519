// Package options holds the behaviors of delete requests and dry-run creates: their options and encodings, and the responses.
package options
