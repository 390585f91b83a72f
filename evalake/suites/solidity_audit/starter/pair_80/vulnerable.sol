// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title MillShares
/// @notice Registered shares with a history, and polls on the holdings of a past block.
contract MillShares {
    struct Entry {
        uint256 fromBlock;
        uint256 balance;
    }

    mapping(address => Entry[]) private history;
    mapping(uint256 => uint256) public pollBlock;
    mapping(uint256 => uint256) public yes;
    mapping(uint256 => mapping(address => bool)) public voted;
    uint256 public pollCount;

    event Moved(address indexed from, address indexed to, uint256 shares);
    event PollOpened(uint256 indexed poll, uint256 atBlock);
    event Voted(uint256 indexed poll, address indexed holder, uint256 shares);

    constructor(uint256 supply) {
        history[msg.sender].push(Entry(block.number, supply));
    }

    function balanceOf(address account) public view returns (uint256) {
        uint256 count = history[account].length;
        return count == 0 ? 0 : history[account][count - 1].balance;
    }

    /// @notice Moves shares of the caller.
    function move(address to, uint256 shares) external {
        require(to != msg.sender && to != address(0), "bad recipient");
        _write(msg.sender, balanceOf(msg.sender) - shares);
        _write(to, balanceOf(to) + shares);
        emit Moved(msg.sender, to, shares);
    }

    /// @notice Opens a poll on the holdings of the last block.
    function openPoll() external returns (uint256 poll) {
        require(balanceOf(msg.sender) > 0, "no shares");
        poll = pollCount++;
        pollBlock[poll] = block.number - 1;
        emit PollOpened(poll, block.number - 1);
    }

    function voteYes(uint256 poll) external {
        require(poll < pollCount && !voted[poll][msg.sender], "cannot vote");
        voted[poll][msg.sender] = true;
        uint256 shares = sharesAt(msg.sender, pollBlock[poll]);
        yes[poll] += shares;
        emit Voted(poll, msg.sender, shares);
    }

    /// @notice Shares of an account at the end of a block.
    function sharesAt(address account, uint256 blockNumber) public view returns (uint256 shares) {
        Entry[] storage list = history[account];
        for (uint256 i = 0; i < list.length && list[i].fromBlock <= blockNumber; i++) {
            shares = list[i].balance;
        }
    }

    function _write(address account, uint256 balance) private {
        history[account].push(Entry(block.number, balance));
    }
}
