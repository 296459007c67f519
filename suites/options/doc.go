// Package options holds the behaviours of delete requests themselves: what they may say, where, in which encoding, and what
// they are answered. One file a topic.
package options
